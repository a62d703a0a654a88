/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Types and helpers of the kernel's interface for BPF programs, with the numbers of linux/bpf.h. Each program declares the
 * kernel structures that it reads in a header of its own, since the loader relocates every field that is declared.
 */
#ifndef TAILWRIGHT_BPF_H
#define TAILWRIGHT_BPF_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

/* Begin and end declarations of kernel structures, whose fields are relocated by name (CO-RE). */
#define KERNEL_STRUCTURES_BEGIN \
	_Pragma("clang attribute push(__attribute__((preserve_access_index)), apply_to = record)")
#define KERNEL_STRUCTURES_END _Pragma("clang attribute pop")

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
	BPF_MAP_TYPE_ARENA = 33,
	BPF_F_NO_PREALLOC = 1 << 0,
	BPF_F_CLONE = 1 << 9,
	BPF_F_MMAPABLE = 1 << 10,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1 << 0,
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_AVAIL_DATA = 0,
	BPF_RB_RING_SIZE = 1,
};

struct task_struct;
struct tcp_sock;
struct pt_regs;

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*bpf_get_smp_processor_id)(void) = (void *)8;
static u64 (*bpf_get_current_pid_tgid)(void) = (void *)14;
static long (*bpf_get_current_comm)(void *into, u32 size) = (void *)16;
static long (*bpf_setsockopt)(void *socket, int level, int option, const void *value, int length) = (void *)49;
static long (*bpf_getsockopt)(void *socket, int level, int option, void *value, int length) = (void *)57;
static u64 (*bpf_get_current_cgroup_id)(void) = (void *)80;
static void *(*bpf_sk_storage_get)(void *map, void *socket, const void *value, u64 flags) = (void *)107;
static long (*bpf_sk_storage_delete)(void *map, void *socket) = (void *)108;
static long (*bpf_probe_read_user)(void *into, u32 size, const void *from) = (void *)112;
static long (*bpf_probe_read_kernel)(void *into, u32 size, const void *from) = (void *)113;
static long (*bpf_probe_read_kernel_str)(void *into, u32 size, const void *from) = (void *)115;
static long (*bpf_ringbuf_output)(void *ring, void *data, u64 size, u64 flags) = (void *)130;
static void *(*bpf_ringbuf_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*bpf_ringbuf_submit)(void *record, u64 flags) = (void *)132;
static u64 (*bpf_ringbuf_query)(void *ring, u64 flags) = (void *)134;
static struct tcp_sock *(*bpf_skc_to_tcp_sock)(const void *sk) = (void *)137;
static void *(*bpf_task_storage_get)(void *map, struct task_struct *task, void *value, u64 flags) = (void *)156;
static struct task_struct *(*bpf_get_current_task_btf)(void) = (void *)158;
static const struct pt_regs *(*bpf_task_pt_regs)(struct task_struct *task) = (void *)175;
static long (*bpf_loop)(u32 turns, void *turn, void *context, u64 flags) = (void *)181;

#endif
