/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The parts of kernel structures that observe.bpf.c reads, and the helpers that it calls.
 *
 * Every field is relocated by name to its place in the running kernel (CO-RE), so that order, size and what lies
 * between the fields here do not matter. Only names and types must be those of the kernel.
 */
#ifndef TAILWRIGHT_KERNEL_H
#define TAILWRIGHT_KERNEL_H

#include "bpf.h"
#define SWAP16(value) __builtin_bswap16(value)
#define SWAP32(value) __builtin_bswap32(value)

KERNEL_STRUCTURES_BEGIN

struct in6_addr {
	union {
		u32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport;
	u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	int sk_peek_off;
	u16 sk_protocol;
};

struct inet_sock {
	u16 inet_sport;
};

struct tcp_sock {
	u32 copied_seq;
	u32 rcv_nxt;
	u32 write_seq;
	_Bool is_mptcp;
};

struct sk_buff {
	struct sock *sk;
	unsigned int len;
	unsigned int data_len;
	u16 protocol;
	u16 transport_header;
	u16 network_header;
	unsigned char *head;
	unsigned char *data;
};

struct iovec {
	void *iov_base;
	unsigned long iov_len;
};

struct iov_iter {
	u8 iter_type;
	unsigned long iov_offset;
	union {
		const struct iovec *__iov;
		void *ubuf;
	};
	unsigned long count;
	unsigned long nr_segs;
};

struct iov_iter___before_6_4 {
	const struct iovec *iov;
};

/* The registers of x86-64 when it entered a system call. */
struct pt_regs {
	unsigned long si;
	unsigned long dx;
	unsigned long orig_ax;
};

union flowi_uli {
	struct {
		u16 dport;
		u16 sport;
	} ports;
};

struct flowi_common {
	u8 flowic_proto;
};

struct flowi4 {
	struct flowi_common __fl_common;
	union flowi_uli uli;
};

struct flowi6 {
	struct flowi_common __fl_common;
	union flowi_uli uli;
};

struct msghdr {
	struct iov_iter msg_iter;
};

struct socket {
	struct sock *sk;
};

struct file {
	void *private_data;
};

struct fdtable {
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct rq {
	struct task_struct *curr;
	u64 clock;
	u64 prev_steal_time_rq;
};

struct cfs_rq {
	struct rq *rq;
	u64 throttled_clock_self;
	u64 throttled_clock_self_time;
	int throttle_count;
};

struct sched_entity {
	struct cfs_rq *cfs_rq;
};

struct task_struct {
	unsigned int flags;
	int pid;
	int tgid;
	int wake_cpu;
	int prio;
	struct sched_entity se;
	_Bool throttled;
	char comm[16];
	unsigned in_iowait : 1;
	struct files_struct *files;
};

struct gendisk {
	int major;
	int first_minor;
};

struct request_queue {
	struct gendisk *disk;
};

struct block_device {
	struct gendisk *bd_disk;
};

struct bvec_iter {
	unsigned int bi_size;
};

struct bio {
	struct block_device *bi_bdev;
	u32 bi_opf;
	struct bvec_iter bi_iter;
};

struct request {
	struct request_queue *q;
	struct bio *bio;
	u32 cmd_flags;
	unsigned int __data_len;
};

struct net_device;

KERNEL_STRUCTURES_END

/* Kinds of buffers that a message is sent from; the numbers are those of the running kernel, see ENUM_VALUE. */
enum iter_type { ITER_UBUF, ITER_IOVEC };

/* Whether the running kernel has a field. */
#define FIELD_EXISTS(field) __builtin_preserve_field_info(field, 2)

/* A field of some bits of a structure whose pointer the kernel vouches for. */
#define READ_BITS(structure, field) ({ \
	const void *at = (const void *)(structure) + __builtin_preserve_field_info((structure)->field, 0); \
	u64 bits = 0; \
	asm volatile("" : "+r"(at)); \
	switch (__builtin_preserve_field_info((structure)->field, 1)) { \
	case 1: bits = *(const u8 *)at; break; \
	case 2: bits = *(const u16 *)at; break; \
	case 4: bits = *(const u32 *)at; break; \
	case 8: bits = *(const u64 *)at; break; \
	} \
	bits <<= __builtin_preserve_field_info((structure)->field, 4); \
	bits >> __builtin_preserve_field_info((structure)->field, 5); \
})

/* The number that a name has in the running kernel. */
#define ENUM_VALUE(type, name) __builtin_preserve_enum_value(*(enum type *)name, 1)

#endif
