/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The parts of kernel structures that the scheduler reads, and the functions of the kernel that it calls.
 *
 * Every field is relocated by name to its offset in the running kernel (CO-RE), so order, size and gaps of the fields
 * here do not matter. Only names and types must be the kernel's.
 */
#ifndef TAILWRIGHT_KERNEL_H
#define TAILWRIGHT_KERNEL_H

#include "bpf.h"

KERNEL_STRUCTURES_BEGIN

struct cpumask;

struct sched_ext_entity {
	u32 flags;
	u32 weight;
	u64 dsq_vtime;
};

struct task_struct {
	unsigned int flags;
	int pid;
	int nr_cpus_allowed;
	const struct cpumask *cpus_ptr;
	struct sched_ext_entity scx;
};

/* Arguments of __scx_bpf_dsq_insert_vtime() besides the thread. */
struct scx_bpf_dsq_insert_vtime_args {
	u64 dsq_id;
	u64 slice;
	u64 vtime;
	u64 enq_flags;
};

struct sched_ext_ops {
	u64 sub_cgroup_id;
};

struct scx_sub_attach_args {
	struct sched_ext_ops *ops;
};

struct scx_sub_detach_args {
	struct sched_ext_ops *ops;
};

enum scx_exit_kind { SCX_EXIT_NONE = 0 };

struct scx_exit_info {
	enum scx_exit_kind kind;
	const char *reason;
	char *msg;
};

KERNEL_STRUCTURES_END

/* Set by the loader to the values that these names have in the running kernel. */
const volatile u64 SCX_DSQ_LOCAL;
const volatile u64 SCX_ENQ_WAKEUP;
const volatile u64 SCX_ENQ_PREEMPT;
const volatile u64 SCX_KICK_IDLE;
const volatile u64 SCX_KICK_PREEMPT;
const volatile u64 SCX_TASK_QUEUED;

#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000

/*
 * Kernel functions (kfuncs). The loader finds each by its name in the kernel's BTF and inserts its number into the call.
 * Results that the kernel declares as bool have 8 meaningful bits: see is_true().
 */
#define KERNEL_FUNCTION(number) ((void *)(0x10000 + (number)))

struct bpf_iter_num {
	u64 opaque[1];
};

struct bpf_iter_scx_dsq {
	u64 opaque[6];
};

static s32 (*scx_bpf_create_dsq)(u64 queue, s32 node) = KERNEL_FUNCTION(0);
static void (*scx_bpf_dsq_insert)(struct task_struct *p, u64 queue, u64 slice, u64 flags) = KERNEL_FUNCTION(1);
static void (*scx_bpf_dsq_insert_vtime)(struct task_struct *p, u64 queue, u64 slice, u64 vtime, u64 flags) = KERNEL_FUNCTION(2);
static u64 (*scx_bpf_dsq_move)(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 queue, u64 flags) = KERNEL_FUNCTION(3);
static u64 (*scx_bpf_dsq_move_to_local)(u64 queue) = KERNEL_FUNCTION(4);
static s32 (*scx_bpf_dsq_nr_queued)(u64 queue) = KERNEL_FUNCTION(5);
static void (*scx_bpf_kick_cpu)(s32 cpu, u64 flags) = KERNEL_FUNCTION(6);
static s32 (*scx_bpf_pick_idle_cpu)(const struct cpumask *allowed, u64 flags) = KERNEL_FUNCTION(7);
static s32 (*scx_bpf_select_cpu_dfl)(struct task_struct *p, s32 before, u64 flags, u8 *is_idle) = KERNEL_FUNCTION(8);
static s32 (*scx_bpf_task_cpu)(const struct task_struct *p) = KERNEL_FUNCTION(9);
static u64 (*bpf_cpumask_test_cpu)(u32 cpu, const struct cpumask *mask) = KERNEL_FUNCTION(10);
static int (*bpf_iter_scx_dsq_new)(struct bpf_iter_scx_dsq *it, u64 queue, u64 flags) = KERNEL_FUNCTION(11);
static struct task_struct *(*bpf_iter_scx_dsq_next)(struct bpf_iter_scx_dsq *it) = KERNEL_FUNCTION(12);
static void (*bpf_iter_scx_dsq_destroy)(struct bpf_iter_scx_dsq *it) = KERNEL_FUNCTION(13);
static int (*bpf_iter_num_new)(struct bpf_iter_num *it, int start, int end) = KERNEL_FUNCTION(14);
static int *(*bpf_iter_num_next)(struct bpf_iter_num *it) = KERNEL_FUNCTION(15);
static void (*bpf_iter_num_destroy)(struct bpf_iter_num *it) = KERNEL_FUNCTION(16);
/* For hierarchies of schedulers, whose operations use their own CPU numbers (cids). */
static void (*scx_bpf_kick_cid)(s32 cid, u64 flags) = KERNEL_FUNCTION(17);
static s32 (*scx_bpf_task_cid)(const struct task_struct *p) = KERNEL_FUNCTION(18);
static s32 (*scx_bpf_cid_to_cpu)(s32 cid) = KERNEL_FUNCTION(19);
static s32 (*scx_bpf_cpu_to_cid)(s32 cpu) = KERNEL_FUNCTION(20);
static u64 (*__scx_bpf_dsq_insert_vtime)(struct task_struct *p, struct scx_bpf_dsq_insert_vtime_args *args) = KERNEL_FUNCTION(21);
static u64 (*scx_bpf_task_set_slice)(struct task_struct *p, u64 slice) = KERNEL_FUNCTION(22);
static u64 (*scx_bpf_sub_dispatch)(u64 group) = KERNEL_FUNCTION(23);
static s32 (*scx_bpf_sub_grant)(u64 group, u64 capabilities, u64 cids, u64 denied) = KERNEL_FUNCTION(24);

INLINE int is_true(u64 answer) { return (answer & 0xff) != 0; }

#endif
