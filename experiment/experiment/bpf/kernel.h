/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The parts of the kernel's interface that sockets.bpf.c uses. Fields of kernel structures are relocated by name to their
 * places in the running kernel (CO-RE).
 */
#ifndef TAILWRIGHT_KERNEL_H
#define TAILWRIGHT_KERNEL_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock_common {
	u16 skc_num;
	volatile unsigned char skc_state;
};

#pragma clang attribute pop

struct bpf_iter_meta;

/* Context of the iterator over TCP sockets; its layout is part of the kernel's interface. */
struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

enum {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_F_NO_PREALLOC = 1 << 0,
	BPF_F_CLONE = 1 << 9,
	BPF_SK_STORAGE_GET_F_CREATE = 1 << 0,
	SOL_TCP = 6,
	TCP_NODELAY = 1,
	TCP_CONGESTION = 13,
	TCP_TIME_WAIT = 6,
	TCP_LISTEN = 10,
	TCP_NEW_SYN_RECV = 12,
};

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_setsockopt)(void *socket, int level, int option, const void *value, int length) = (void *)49;
static long (*bpf_getsockopt)(void *socket, int level, int option, void *value, int length) = (void *)57;
static void *(*bpf_sk_storage_get)(void *map, void *socket, const void *value, u64 flags) = (void *)107;
static long (*bpf_sk_storage_delete)(void *map, void *socket) = (void *)108;
static long (*bpf_probe_read_user)(void *into, u32 size, const void *from) = (void *)112;
static long (*bpf_probe_read_kernel)(void *into, u32 size, const void *from) = (void *)113;
static long (*bpf_probe_read_kernel_str)(void *into, u32 size, const void *from) = (void *)115;

#endif
