/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Code shared by the schedulers, and the differences between one of the whole machine and one of a hierarchy.
 * With IN_HIERARCHY the kernel passes its own CPU numbers (cids) to the operations and does not track idle
 * CPUs. All other code uses CPU numbers only.
 */
#ifndef TAILWRIGHT_COMMON_H
#define TAILWRIGHT_COMMON_H

#include "layout.h"

#define UNTAGGED_QUEUE 0x100000

#define NS_PER_US 1000ull
#define NS_PER_MS 1000000ull
/* Interval between searches for starved threads, and the share of slices that one may take. */
#define SCAN_EVERY_NS 20000000ull
#define RESCUE_ONCE_IN 5
/* A slice is over if at most this fraction of it is left at a tick, since it begins shortly after a tick. */
#define SLICE_REST 8
/* Maximum time for which credit accrues. */
#define REFILL_LIMIT_NS 10000000000ull

struct {
	int (*type)[BPF_MAP_TYPE_ARRAY];
	int (*map_flags)[BPF_F_MMAPABLE];
	u32 *key;
	struct slot *value;
	int (*max_entries)[16384];
} slots SEC(".maps");

struct {
	int (*type)[BPF_MAP_TYPE_ARRAY];
	int (*map_flags)[BPF_F_MMAPABLE];
	u32 *key;
	struct control *value;
	int (*max_entries)[1];
} control SEC(".maps");

struct {
	int (*type)[BPF_MAP_TYPE_ARRAY];
	int (*map_flags)[BPF_F_MMAPABLE];
	u32 *key;
	struct cpu_state *value;
	int (*max_entries)[MAX_CPUS];
} cpus SEC(".maps");

/* Set by the loader before the programs are loaded. */
const volatile u32 cpus_count = 1;

/* Slot number of each thread, written once by programs. */
struct {
	int (*type)[BPF_MAP_TYPE_TASK_STORAGE];
	int (*map_flags)[BPF_F_NO_PREALLOC];
	int *key;
	u32 *value;
} threads SEC(".maps");

struct {
	int (*type)[BPF_MAP_TYPE_TASK_STORAGE];
	int (*map_flags)[BPF_F_NO_PREALLOC];
	int *key;
	struct task_state *value;
} tasks SEC(".maps");

INLINE struct control *the_control(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&control, &zero);
}

INLINE struct task_state *state_of(struct task_struct *p)
{
	return bpf_task_storage_get(&tasks, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* Returns the slot of a thread; 0: none. */
INLINE u32 slot_of(struct task_struct *p)
{
	u32 *slot = bpf_task_storage_get(&threads, p, 0, 0);
	return slot ? *slot : 0;
}

INLINE struct cpu_state *state_of_cpu(u32 cpu) { return bpf_map_lookup_elem(&cpus, &cpu); }

INLINE int may_run_on(struct task_struct *p, u32 cpu) { return is_true(bpf_cpumask_test_cpu(cpu, p->cpus_ptr)); }

INLINE int is_kernel_thread_of_a_cpu(struct task_struct *p)
{
	return (p->flags & PF_KTHREAD) && p->nr_cpus_allowed == 1;
}

INLINE int is_before(u64 key, u64 other) { return (s64)(key - other) < 0; }

#ifdef IN_HIERARCHY

/* Memory shared by kernel and loader. The kernel requires one for each scheduler of a hierarchy. */
struct {
	int (*type)[BPF_MAP_TYPE_ARENA];
	int (*map_flags)[BPF_F_MMAPABLE];
	int (*max_entries)[1024];
} arena SEC(".maps");

/* The verifier associates an arena with a scheduler if a program refers to it. */
INLINE void have_arena(void) { asm volatile("" : : "r"(&arena)); }

INLINE u32 cpu_of_cid(u64 cid) { return scx_bpf_cid_to_cpu(cid); }

INLINE u32 cpu_of(const struct task_struct *p) { return scx_bpf_cid_to_cpu(scx_bpf_task_cid(p)); }

INLINE void kick_cpu(u32 cpu, u64 flags) { scx_bpf_kick_cid(scx_bpf_cpu_to_cid(cpu), flags); }

INLINE void insert_by(u64 order, struct task_struct *p, u64 queue, u64 slice, u64 flags)
{
	struct scx_bpf_dsq_insert_vtime_args args = { queue, slice, order, flags };
	__scx_bpf_dsq_insert_vtime(p, &args);
}

#define IS_GONE(p) ((p)->flags & PF_EXITING)

/*
 * Flags for waking a CPU that runs no thread of this scheduler. It may run a thread of another scheduler, and
 * the one above decides which is next. If a thread returns because its slice is over, that decision has been
 * made.
 */
INLINE u64 kick_of_others(u64 flags) { return (flags & SCX_ENQ_WAKEUP) ? SCX_KICK_PREEMPT : SCX_KICK_IDLE; }

/* Claims an idle CPU that a thread may use; -1: none. */
INLINE s32 take_idle_cpu(struct task_struct *p)
{
	struct bpf_iter_num it;
	s32 found = -1;
	int *cpu;
	bpf_iter_num_new(&it, 0, cpus_count);
	while ((cpu = bpf_iter_num_next(&it))) {
		u32 number = *cpu;
		struct cpu_state *s = state_of_cpu(number);
		if (s && s->is_idle && may_run_on(p, number)) {
			s->is_idle = 0;
			found = number;
			break;
		}
	}
	bpf_iter_num_destroy(&it);
	return found;
}

int select_cid(u64 *ctx)
{
	s32 cpu = take_idle_cpu((struct task_struct *)ctx[0]);
	return cpu < 0 ? (s32)ctx[1] : scx_bpf_cpu_to_cid(cpu);
}

int update_idle(u64 *ctx)
{
	struct cpu_state *s = state_of_cpu(cpu_of_cid(ctx[0]));
	if (s)
		s->is_idle = (u8)ctx[1];
	return 0;
}

/*
 * Called after a scheduler's decision for a CPU. If the CPU continues its thread, the scheduler above accepts
 * that only with a remaining slice. A CPU woken in vain sleeps again, and the kernel sends no update_idle for
 * it.
 */
INLINE void let_continue(struct control *c, struct cpu_state *s, struct task_struct *before)
{
	if (scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL) > 0)
		return;
	if (before)
		scx_bpf_task_set_slice(before, c->slice_ns);
	else
		s->is_idle = 1;
}

#else

#define IS_GONE(p) 1

INLINE u64 kick_of_others(u64 flags) { return SCX_KICK_IDLE; }

INLINE void have_arena(void) {}

INLINE u32 cpu_of_cid(u64 cpu) { return cpu; }

INLINE u32 cpu_of(const struct task_struct *p) { return scx_bpf_task_cpu(p); }

INLINE void kick_cpu(u32 cpu, u64 flags) { scx_bpf_kick_cpu(cpu, flags); }

INLINE void insert_by(u64 order, struct task_struct *p, u64 queue, u64 slice, u64 flags)
{
	scx_bpf_dsq_insert_vtime(p, queue, slice, order, flags);
}

INLINE s32 take_idle_cpu(struct task_struct *p) { return scx_bpf_pick_idle_cpu(p->cpus_ptr, 0); }

int select_cpu(u64 *ctx)
{
	u8 is_idle = 0;
	return scx_bpf_select_cpu_dfl((struct task_struct *)ctx[0], ctx[1], ctx[2], &is_idle);
}

INLINE void let_continue(struct control *c, struct cpu_state *s, struct task_struct *before) {}

#endif

/* Returns the CPU time that untagged threads may take before tagged ones, and charges their use until now. */
INLINE s64 credit_of(struct cpu_state *s, struct control *c, u64 now)
{
	u64 elapsed = now - s->refilled_at;
	if (elapsed > REFILL_LIMIT_NS)
		elapsed = REFILL_LIMIT_NS;
	s64 credit = s->credit_ns + elapsed * c->untagged_permille / 1000;
	s->refilled_at = now;
	if (s->running == RUNS_UNTAGGED) {
		credit -= now - s->charged_at;
		s->charged_at = now;
	}
	if (credit > (s64)c->untagged_burst_ns)
		credit = c->untagged_burst_ns;
	if (credit < -(s64)c->slice_ns)
		credit = -(s64)c->slice_ns;
	s->credit_ns = credit;
	return credit;
}

INLINE void enqueue_kernel_thread(struct control *c, struct task_struct *p, u32 cpu, u64 flags)
{
	struct cpu_state *s = state_of_cpu(cpu);
	if ((flags & SCX_ENQ_WAKEUP) && s && s->running != RUNS_KERNEL_THREAD)
		flags |= SCX_ENQ_PREEMPT;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, c->slice_ns, flags);
}

/* Queues by weighted virtual time. A thread that slept is owed at most one slice. */
INLINE void insert_by_weighted_time(struct control *c, struct task_struct *p, struct task_state *t, u64 queue, u64 flags)
{
	u64 least = c->untagged_vruntime - c->slice_ns;
	if (is_before(t->vruntime, least))
		t->vruntime = least;
	insert_by(t->vruntime, p, queue, c->slice_ns, flags);
}

/* Moves a thread of a queue to the calling CPU. */
INLINE int move(u64 queue, u64 thread)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	u64 is_moved = 0;
	bpf_iter_scx_dsq_new(&it, queue, 0);
	while ((p = bpf_iter_scx_dsq_next(&it))) {
		if ((u64)(u32)p->pid == thread) {
			is_moved = is_true(scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL, 0));
			break;
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	return is_moved;
}

/*
 * Returns the thread that has waited longest in a queue, among those allowed on the CPU and waiting since
 * before `since`.
 */
INLINE u64 longest_in(u64 queue, u64 cpu, u64 *since)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	u64 thread = 0, first = *since;
	bpf_iter_scx_dsq_new(&it, queue, 0);
	while ((p = bpf_iter_scx_dsq_next(&it))) {
		if (!may_run_on(p, cpu))
			continue;
		struct task_state *t = bpf_task_storage_get(&tasks, p, 0, 0);
		if (t && t->queued_at < first) {
			first = t->queued_at;
			thread = (u32)p->pid;
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	*since = first;
	return thread;
}

/*
 * Returns the thread that has waited longest, in `queue` or untagged, if it has waited beyond the patience;
 * otherwise 0. `from` is its queue. At most one slice in RESCUE_ONCE_IN goes to such threads, but every one
 * while a thread has waited for half of the kernel's watchdog timeout.
 */
INLINE u64 impatient(struct control *c, struct cpu_state *s, u64 queue, u64 cpu, u64 now, u64 *from)
{
	u64 every = RESCUE_ONCE_IN * c->slice_ns, since = now;
	if (every < SCAN_EVERY_NS)
		every = SCAN_EVERY_NS;
	if (now - s->scanned_at < every)
		return 0;
	u64 thread = queue == UNTAGGED_QUEUE ? 0 : longest_in(queue, cpu, &since);
	u64 untagged = longest_in(UNTAGGED_QUEUE, cpu, &since);
	*from = untagged ? UNTAGGED_QUEUE : queue;
	if (untagged)
		thread = untagged;
	if (now - since < c->overdue_ms * NS_PER_MS)
		s->scanned_at = now;
	if (!thread || now - since < c->patience_ns)
		return 0;
	s->rescues++;
	return thread;
}

/*
 * Returns true if an untagged thread waits whose weighted time is less than that of the running untagged
 * thread.
 */
INLINE int is_behind_another(struct cpu_state *s, struct task_struct *running, u64 cpu, u64 now)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	struct task_state *t = state_of(running);
	u32 weight = running->scx.weight;
	int answer = 0;
	if (!t || !weight)
		return 1;
	u64 own = t->vruntime + (now - s->since) * 100 / weight;
	bpf_iter_scx_dsq_new(&it, UNTAGGED_QUEUE, 0);
	while ((p = bpf_iter_scx_dsq_next(&it))) {
		if (may_run_on(p, cpu)) {
			answer = is_before(p->scx.dsq_vtime, own);
			break;
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	return answer;
}

/*
 * Runs the untagged thread with the least weighted time, which may be the running one. Returns 0 if none is
 * runnable.
 */
INLINE int serve_by_weighted_time(struct cpu_state *s, struct task_struct *running, u64 cpu, u64 now)
{
	if (running && !is_behind_another(s, running, cpu, now))
		return 1;
	return is_true(scx_bpf_dsq_move_to_local(UNTAGGED_QUEUE)) || running;
}

INLINE u64 at_most(u64 value, u64 most) { return value < most ? value : most; }

/*
 * Elapsed part of a slice. The time to choose the thread counts, since it delays others as much as running
 * does.
 */
INLINE u64 over_of_slice(struct cpu_state *s, u64 now) { return now - s->since + s->choice_us * NS_PER_US; }

INLINE int is_slice(struct control *c, u64 ns) { return ns + c->slice_ns / SLICE_REST >= c->slice_ns; }

/*
 * Notes that a thread begins to run. Untagged threads share a virtual time, which advances to that of the
 * thread.
 */
INLINE void note_begin(struct control *c, struct cpu_state *s, struct task_struct *p, u32 what, u64 now)
{
	credit_of(s, c, now);
	s->since = now;
	s->choice_us = at_most((u32)now - s->asked_at, c->slice_ns / 2) / NS_PER_US;
	s->charged_at = now;
	s->running = what;
	struct task_state *t = what == RUNS_UNTAGGED ? state_of(p) : 0;
	if (t && is_before(c->untagged_vruntime, t->vruntime))
		c->untagged_vruntime = t->vruntime;
}

/*
 * Notes the start of a wait. Requeueing after a change of CPUs or policy does not end a wait, nor does an
 * interruption before the thread has had a slice.
 */
INLINE void note_wait(struct task_state *t, u64 now)
{
	if (!t->queued_at)
		t->queued_at = now;
}

INLINE void end_wait(struct task_state *t)
{
	t->queued_at = 0;
	t->had_ns = 0;
}

INLINE void charge(struct control *c, struct cpu_state *s, struct task_struct *p, u64 wants_more, u64 now)
{
	u64 ran = now - s->since;
	if (s->running == RUNS_KERNEL_THREAD) {
		s->kernel_thread_ns += ran;
		return;
	}
	struct task_state *t = state_of(p);
	if (t) {
		t->had_ns += ran + at_most(s->choice_us * NS_PER_US, c->slice_ns / SLICE_REST);
		if (!wants_more || is_slice(c, t->had_ns))
			end_wait(t);
	}
	if (s->running == RUNS_TAGGED) {
		s->tagged_ns += ran;
	} else {
		u32 weight = p->scx.weight;
		s->untagged_ns += ran;
		credit_of(s, c, now);
		if (!t || !weight)
			return;
		t->vruntime += ran * 100 / weight;
	}
}

/*
 * The thread has left the scheduler, for another class or another scheduler that may run it: its wait is
 * over.
 */
int disable(u64 *ctx)
{
	struct task_state *t = bpf_task_storage_get(&tasks, (struct task_struct *)ctx[0], 0, 0);
	if (t)
		end_wait(t);
	return 0;
}

/*
 * Frees the slot of a thread that exits. In a hierarchy a thread that moves to another scheduler keeps its
 * slot, since it may return.
 */
int exit_task(u64 *ctx)
{
	struct task_struct *p = (struct task_struct *)ctx[0];
	u32 number = IS_GONE(p) ? slot_of(p) : 0;
	struct slot *slot = number ? bpf_map_lookup_elem(&slots, &number) : 0;
	if (slot) {
		slot->key = 0;
		slot->owner = 0;
	}
	return 0;
}

/* For any reason of the end, programs see in slot 0 that their slots are no longer read. */
int exit(u64 *ctx)
{
	struct scx_exit_info *info = (struct scx_exit_info *)ctx[0];
	struct control *c = the_control();
	u32 zero = 0;
	struct slot *own = bpf_map_lookup_elem(&slots, &zero);
	if (own)
		own->key = 0;
	if (!c)
		return 0;
	bpf_probe_read_kernel_str(c->exit_reason, sizeof(c->exit_reason), info->reason);
	bpf_probe_read_kernel_str(c->exit_message, sizeof(c->exit_message), info->msg);
	c->exit_kind = info->kind;
	return 0;
}

#endif
