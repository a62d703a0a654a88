// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * Schedules threads by the age of the request that they work for: Oldest Request First (TailClipper, Algorithm 1).
 *
 * Like the rest of the repository, this file is licensed under MIT or Apache-2.0, as you choose. The licence that is
 * declared to the kernel, "Dual MIT/GPL", lets the kernel run it.
 *
 * Threads with a request wait in queues ordered by the request's key, one for each CPU or one for all. Among the c oldest,
 * the running one included, the least recently served is next. An arrival that makes the running thread one of those that
 * are not among the c oldest interrupts it. Threads without a request have a share of each CPU before the others, and what
 * the others leave. Kernel threads of one CPU go before all. Whoever has waited too long has a slice out of turn, before
 * the kernel's watchdog ends the scheduler.
 *
 * All is one program for each operation of the kernel's sched_ext_ops; the loader joins them by the names of the functions.
 */
#include "layout.h"

#define UNTAGGED_QUEUE 0x100000
#define SHARED_QUEUE 0x100001

#define NS_PER_MS 1000000ull
/* How often those who wait too long are searched, and in how many slices one of them has its turn. */
#define SCAN_EVERY_NS 20000000ull
#define RESCUE_ONCE_IN 5
/* A slice ends in the tick before which this part of it is left, since it begins a little after a tick. */
#define SLICE_REST 8
/* Time without credit counts up to this. */
#define REFILL_LIMIT_NS 10000000000ull

/* Set by the loader before the programs are loaded. */
const volatile u32 cpus_count = 1;
const volatile u32 is_shared;   /* one queue for all CPUs */
const volatile u32 log_entries; /* 0: no log */

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

/* As many entries as the loader decides. */
struct {
	int (*type)[BPF_MAP_TYPE_ARRAY];
	int (*map_flags)[BPF_F_MMAPABLE];
	u32 *key;
	struct event *value;
	int (*max_entries)[1];
} events SEC(".maps");

/* Written by programs, once for each thread: the number of its slot. */
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

INLINE struct cpu_state *state_of_cpu(u32 cpu) { return bpf_map_lookup_elem(&cpus, &cpu); }

INLINE struct task_state *state_of(struct task_struct *p)
{
	return bpf_task_storage_get(&tasks, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* The slot of a thread; 0: it has none. */
INLINE u32 slot_of(struct task_struct *p)
{
	u32 *slot = bpf_task_storage_get(&threads, p, 0, 0);
	return slot ? *slot : 0;
}

INLINE u64 key_in(u32 number)
{
	struct slot *slot = number ? bpf_map_lookup_elem(&slots, &number) : 0;
	return slot ? *(volatile u64 *)&slot->key : 0;
}

INLINE u64 key_of(struct task_struct *p) { return key_in(slot_of(p)); }

INLINE int is_kernel_thread_of_a_cpu(struct task_struct *p)
{
	return (p->flags & PF_KTHREAD) && p->nr_cpus_allowed == 1;
}

INLINE u64 queue_of(u64 cpu) { return is_shared ? SHARED_QUEUE : cpu; }

INLINE int is_before(u64 key, u64 other) { return (s64)(key - other) < 0; }

INLINE void note(struct control *c, u32 kind, u32 cpu, u32 thread, u64 key, u32 other, u64 other_key, u64 now)
{
	if (!log_entries)
		return;
	u32 index = __sync_fetch_and_add(&c->log_next, 1);
	if (index >= log_entries)
		return;
	struct event *event = bpf_map_lookup_elem(&events, &index);
	if (!event)
		return;
	event->time_ns = now;
	event->key = key;
	event->other_key = other_key;
	event->thread = thread;
	event->other = other;
	event->cpu = cpu;
	event->oldest = c->oldest;
	event->kind = kind;
}

/* What untagged threads may take before others, with what they have taken until now. */
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

/* How many of those in a CPU's queue can be among the c oldest: with one queue, those that other CPUs run are. */
INLINE u64 places(struct control *c, struct cpu_state *s)
{
	u64 oldest = c->oldest, others = 0;
	if (is_shared)
		others = c->tagged_running - (s->running == RUNS_TAGGED);
	return oldest > others ? oldest - others : 1;
}

/* How many in a queue are older than a key, counted up to a limit. */
INLINE u64 older_in(u64 queue, u64 key, u64 limit)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	u64 older = 0;
	bpf_iter_scx_dsq_new(&it, queue, 0);
	while ((p = bpf_iter_scx_dsq_next(&it))) {
		if (older >= limit || !is_before(p->scx.dsq_vtime, key))
			break;
		older++;
	}
	bpf_iter_scx_dsq_destroy(&it);
	return older;
}

INLINE void kick(struct cpu_state *s, u32 cpu, u64 flags)
{
	if (flags == SCX_KICK_PREEMPT)
		s->kicks++;
	scx_bpf_kick_cpu(cpu, flags);
}

/* The CPU, of those that a thread may use, that runs the youngest request. */
INLINE u64 cpu_of_youngest(struct task_struct *p, u64 cpu)
{
	struct bpf_iter_num it;
	u64 youngest = 0;
	int *other;
	bpf_iter_num_new(&it, 0, cpus_count);
	while ((other = bpf_iter_num_next(&it))) {
		u32 number = *other;
		struct cpu_state *s = state_of_cpu(number);
		if (!s || s->running != RUNS_TAGGED || !is_true(bpf_cpumask_test_cpu(number, p->cpus_ptr)))
			continue;
		u64 key = key_in(s->running_slot);
		if (!youngest || is_before(youngest, key)) {
			youngest = key;
			cpu = number;
		}
	}
	bpf_iter_num_destroy(&it);
	return cpu;
}

/* Lets a CPU look again if a request with this key belongs before what it runs. */
INLINE void interrupt(struct control *c, u32 cpu, u64 key, u64 now)
{
	struct cpu_state *s = state_of_cpu(cpu);
	if (!s)
		return;
	if (s->running == RUNS_NOTHING) {
		kick(s, cpu, SCX_KICK_IDLE);
	} else if (s->running == RUNS_UNTAGGED) {
		if (credit_of(s, c, now) <= 0)
			kick(s, cpu, SCX_KICK_PREEMPT);
	} else if (s->running == RUNS_TAGGED) {
		u64 running = key_in(s->running_slot);
		u64 limit = places(c, s);
		if (!running || (is_before(key, running) && older_in(queue_of(cpu), running, limit) + 1 >= limit))
			kick(s, cpu, SCX_KICK_PREEMPT);
	}
}

INLINE void interrupt_for_untagged(struct control *c, u32 cpu, u64 now)
{
	struct cpu_state *s = state_of_cpu(cpu);
	if (!s)
		return;
	if (s->running == RUNS_NOTHING)
		kick(s, cpu, SCX_KICK_IDLE);
	else if (s->running == RUNS_TAGGED && credit_of(s, c, now) > 0)
		kick(s, cpu, SCX_KICK_PREEMPT);
}

int select_cpu(u64 *ctx)
{
	u8 is_idle = 0;
	return scx_bpf_select_cpu_dfl((struct task_struct *)ctx[0], ctx[1], ctx[2], &is_idle);
}

INLINE void enqueue_kernel_thread(struct control *c, struct task_struct *p, u32 cpu, u64 flags)
{
	struct cpu_state *s = state_of_cpu(cpu);
	if ((flags & SCX_ENQ_WAKEUP) && s && s->running != RUNS_KERNEL_THREAD)
		flags |= SCX_ENQ_PREEMPT;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, c->slice_ns, flags);
}

INLINE void enqueue_tagged(struct control *c, struct task_struct *p, u32 cpu, u64 key, u64 flags, u64 now)
{
	u32 chosen = cpu;
	note(c, EVENT_QUEUED, cpu, p->pid, key, 0, 0, now);
	scx_bpf_dsq_insert_vtime(p, queue_of(cpu), c->slice_ns, key, flags);
	if (is_shared)
		chosen = cpu_of_youngest(p, cpu);
	interrupt(c, chosen, key, now);
}

/* In order of weighted time. Who slept is not owed more than a slice. */
INLINE void enqueue_untagged(struct control *c, struct task_struct *p, struct task_state *t, u32 cpu, u64 flags, u64 now)
{
	u64 least = c->untagged_vruntime - c->slice_ns;
	if (is_before(t->vruntime, least))
		t->vruntime = least;
	scx_bpf_dsq_insert_vtime(p, UNTAGGED_QUEUE, c->slice_ns, t->vruntime, flags);
	interrupt_for_untagged(c, cpu, now);
}

int enqueue(u64 *ctx)
{
	struct task_struct *p = (struct task_struct *)ctx[0];
	u64 flags = ctx[1], now = bpf_ktime_get_ns();
	u32 cpu = scx_bpf_task_cpu(p);
	struct control *c = the_control();
	struct task_state *t = state_of(p);
	if (!c)
		return 0;
	if (is_kernel_thread_of_a_cpu(p) || !t) {
		enqueue_kernel_thread(c, p, cpu, flags);
		return 0;
	}
	t->queued_at = now;
	u64 key = key_of(p);
	if (key)
		enqueue_tagged(c, p, cpu, key, flags, now);
	else
		enqueue_untagged(c, p, t, cpu, flags, now);
	if (p->nr_cpus_allowed > 1) {
		s32 idle = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
		if (idle >= 0)
			scx_bpf_kick_cpu(idle, SCX_KICK_IDLE);
	}
	return 0;
}

int dequeue(u64 *ctx)
{
	struct task_struct *p = (struct task_struct *)ctx[0];
	struct control *c = the_control();
	if (c && log_entries && slot_of(p))
		note(c, EVENT_LEFT, scx_bpf_task_cpu(p), p->pid, 0, 0, 0, bpf_ktime_get_ns());
	return 0;
}

/* Moves a thread of a queue to the CPU that asks. */
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

/* The thread that has waited longest in a queue, of those that may run on a CPU and have waited since before `since`. */
INLINE u64 longest_in(u64 queue, u64 cpu, u64 *since)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	u64 thread = 0, first = *since;
	bpf_iter_scx_dsq_new(&it, queue, 0);
	while ((p = bpf_iter_scx_dsq_next(&it))) {
		struct task_state *t = bpf_task_storage_get(&tasks, p, 0, 0);
		if (t && t->queued_at < first && is_true(bpf_cpumask_test_cpu(cpu, p->cpus_ptr))) {
			first = t->queued_at;
			thread = (u32)p->pid;
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	*since = first;
	return thread;
}

/*
 * Serves who has waited longest, with a request or without, if that is longer than the patience: at most once in five
 * slices, but every time while somebody has waited for half of what the kernel's watchdog bears.
 */
INLINE int rescue(struct control *c, struct cpu_state *s, u64 cpu, u64 now)
{
	u64 every = RESCUE_ONCE_IN * c->slice_ns, since = now, queue = queue_of(cpu);
	if (every < SCAN_EVERY_NS)
		every = SCAN_EVERY_NS;
	if (now - s->scanned_at < every)
		return 0;
	u64 thread = longest_in(queue, cpu, &since);
	u64 untagged = longest_in(UNTAGGED_QUEUE, cpu, &since);
	if (untagged) {
		thread = untagged;
		queue = UNTAGGED_QUEUE;
	}
	if (now - since < c->overdue_ms * NS_PER_MS)
		s->scanned_at = now;
	if (!thread || now - since < c->patience_ns)
		return 0;
	s->rescues++;
	note(c, EVENT_RESCUED, cpu, thread, 0, 0, 0, now);
	return move(queue, thread);
}

/*
 * The rule: of the c oldest, the running one included, the least recently served. Returns whether a tagged thread goes on,
 * the one that ran or another one. src/choice.rs has the same in Rust.
 */
INLINE int choose(struct control *c, struct cpu_state *s, u64 cpu, struct task_struct *running, u64 now)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	u64 queue = queue_of(cpu), running_key = running ? key_of(running) : 0, least = ~0ull, key = 0;
	u64 left, thread = 0, continues = 0;
	u32 other = running_key ? running->pid : 0;
	if (is_shared)
		note(c, EVENT_LOOKS, cpu, 0, 0, 0, 0, now);
	left = places(c, s);
	bpf_iter_scx_dsq_new(&it, queue, 0);
	while ((p = bpf_iter_scx_dsq_next(&it))) {
		u64 waiting_key = p->scx.dsq_vtime;
		if (is_shared && !is_true(bpf_cpumask_test_cpu(cpu, p->cpus_ptr)))
			continue;
		if (running_key && !continues && left > 0 && !is_before(waiting_key, running_key)) {
			continues = 1;
			left--;
		}
		if (left == 0)
			break;
		left--;
		struct task_state *t = bpf_task_storage_get(&tasks, p, 0, 0);
		if (t && t->served_at < least) {
			least = t->served_at;
			thread = (u32)p->pid;
			key = waiting_key;
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	if (running_key && left > 0)
		continues = 1;
	if (!thread && !continues)
		return 0;
	s->choices++;
	if (!thread) {
		note(c, EVENT_KEPT, cpu, other, running_key, other, running_key, now);
		return 1;
	}
	s->turns++;
	note(c, EVENT_CHOSEN, cpu, thread, key, other, running_key, now);
	return move(queue, thread) || continues;
}

INLINE int steal(struct cpu_state *s, u64 cpu)
{
	struct bpf_iter_num it;
	int *step;
	u64 is_moved = 0;
	bpf_iter_num_new(&it, 1, cpus_count);
	while ((step = bpf_iter_num_next(&it))) {
		u64 other = (cpu + *step) % cpus_count;
		if (scx_bpf_dsq_nr_queued(other) > 0 && is_true(scx_bpf_dsq_move_to_local(other))) {
			is_moved = 1;
			s->steals++;
			break;
		}
	}
	bpf_iter_num_destroy(&it);
	return is_moved;
}

int dispatch(u64 *ctx)
{
	u64 cpu = (u32)ctx[0];
	struct task_struct *before = (struct task_struct *)ctx[1];
	u64 now = bpf_ktime_get_ns();
	struct control *c = the_control();
	struct cpu_state *s = state_of_cpu(cpu);
	if (!c || !s)
		return 0;
	if (before && !(before->scx.flags & SCX_TASK_QUEUED))
		before = 0;
	int is_untagged = before && !key_of(before);
	if (rescue(c, s, cpu, now))
		return 0;
	if (credit_of(s, c, now) > 0 && (is_true(scx_bpf_dsq_move_to_local(UNTAGGED_QUEUE)) || is_untagged))
		return 0;
	if (choose(c, s, cpu, is_untagged ? 0 : before, now))
		return 0;
	if (!is_shared && steal(s, cpu))
		return 0;
	scx_bpf_dsq_move_to_local(UNTAGGED_QUEUE);
	return 0;
}

int running(u64 *ctx)
{
	struct task_struct *p = (struct task_struct *)ctx[0];
	u64 now = bpf_ktime_get_ns();
	u32 cpu = bpf_get_smp_processor_id(), slot = slot_of(p);
	struct control *c = the_control();
	struct cpu_state *s = state_of_cpu(cpu);
	if (!c || !s)
		return 0;
	u64 key = key_in(slot);
	credit_of(s, c, now);
	s->since = now;
	s->charged_at = now;
	s->running_slot = slot;
	s->running_key = key;
	s->running = is_kernel_thread_of_a_cpu(p) ? RUNS_KERNEL_THREAD : key ? RUNS_TAGGED : RUNS_UNTAGGED;
	if (s->running == RUNS_TAGGED)
		__sync_fetch_and_add(&c->tagged_running, 1);
	if (slot)
		note(c, EVENT_RUNNING, cpu, p->pid, key, 0, 0, now);
	return 0;
}

INLINE void charge(struct control *c, struct cpu_state *s, struct task_struct *p, u64 now)
{
	u64 ran = now - s->since;
	if (s->running == RUNS_TAGGED) {
		s->tagged_ns += ran;
	} else if (s->running == RUNS_KERNEL_THREAD) {
		s->kernel_thread_ns += ran;
	} else {
		struct task_state *t = state_of(p);
		u32 weight = p->scx.weight;
		s->untagged_ns += ran;
		credit_of(s, c, now);
		if (!t || !weight)
			return;
		t->vruntime += ran * 100 / weight;
		if (is_before(c->untagged_vruntime, t->vruntime))
			c->untagged_vruntime = t->vruntime;
	}
}

int stopping(u64 *ctx)
{
	struct task_struct *p = (struct task_struct *)ctx[0];
	u64 now = bpf_ktime_get_ns();
	u32 cpu = bpf_get_smp_processor_id();
	struct control *c = the_control();
	struct cpu_state *s = state_of_cpu(cpu);
	if (!c || !s)
		return 0;
	charge(c, s, p, now);
	if (s->running == RUNS_TAGGED)
		__sync_fetch_and_add(&c->tagged_running, -1);
	s->running = RUNS_NOTHING;
	if (slot_of(p)) {
		struct task_state *t = state_of(p);
		if (t)
			t->served_at = now;
		note(c, EVENT_STOPPED, cpu, p->pid, 0, 0, 0, now);
	}
	return 0;
}

/* What no event says: the slice is over, the thread took another request, or credit has run out or come. */
int tick(u64 *ctx)
{
	struct task_struct *p = (struct task_struct *)ctx[0];
	u64 now = bpf_ktime_get_ns();
	u32 cpu = bpf_get_smp_processor_id();
	struct control *c = the_control();
	struct cpu_state *s = state_of_cpu(cpu);
	if (!c || !s || s->running == RUNS_KERNEL_THREAD)
		return 0;
	s64 credit = credit_of(s, c, now);
	int others_wait = scx_bpf_dsq_nr_queued(queue_of(cpu)) > 0;
	int untagged_wait = scx_bpf_dsq_nr_queued(UNTAGGED_QUEUE) > 0;
	int is_another = key_of(p) != s->running_key, is_over = now - s->since + c->slice_ns / SLICE_REST >= c->slice_ns;
	int changes = (others_wait || untagged_wait) && (is_another || is_over);
	if (s->running == RUNS_TAGGED)
		changes = changes || (untagged_wait && credit > 0);
	else
		changes = changes || (others_wait && credit <= 0);
	if (changes)
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	return 0;
}

/* A slot is free again when its thread is gone, whatever ended it. */
int exit_task(u64 *ctx)
{
	struct task_struct *p = (struct task_struct *)ctx[0];
	u32 number = slot_of(p);
	struct slot *slot = number ? bpf_map_lookup_elem(&slots, &number) : 0;
	if (slot) {
		slot->key = 0;
		slot->owner = 0;
	}
	return 0;
}

int init(u64 *ctx)
{
	struct bpf_iter_num it;
	int *cpu, error = 0;
	bpf_iter_num_new(&it, 0, cpus_count);
	while ((cpu = bpf_iter_num_next(&it))) {
		error = scx_bpf_create_dsq(*cpu, -1);
		if (error)
			break;
	}
	bpf_iter_num_destroy(&it);
	if (!error)
		error = scx_bpf_create_dsq(UNTAGGED_QUEUE, -1);
	if (!error)
		error = scx_bpf_create_dsq(SHARED_QUEUE, -1);
	return error;
}

/* Whatever ends the scheduler, programs see that nobody reads their slots. */
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

const char declared_license[] SEC("license") = "Dual MIT/GPL";
