// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * Schedules threads by the age of the request that they work for: Oldest Request First (TailClipper,
 * Algorithm 1).
 *
 * Like the rest of the repository, this file is licensed under MIT or Apache-2.0, as you choose. The licence
 * that is declared to the kernel, "Dual MIT/GPL", lets the kernel run it.
 *
 * Threads with a request wait in queues ordered by the request's key, one for each CPU or one for all. Among
 * the c oldest, the running one included, the least recently served is next. An arrival that displaces the
 * running thread from the c oldest interrupts it. Threads without a request have a reserved share of each
 * CPU, and what the others leave. Kernel threads bound to a CPU go before all. A thread that has waited too
 * long runs one slice out of turn, before the kernel's watchdog ends the scheduler.
 *
 * Each function implements one operation of the kernel's sched_ext_ops; the loader matches them by name.
 */
#include "common.h"

#define SHARED_QUEUE 0x100001

/* Set by the loader before the programs are loaded. */
const volatile u32 is_shared;   /* one queue for all CPUs */
const volatile u32 log_entries; /* 0: no log */

/* The loader sets the number of entries. */
struct {
	int (*type)[BPF_MAP_TYPE_ARRAY];
	int (*map_flags)[BPF_F_MMAPABLE];
	u32 *key;
	struct event *value;
	int (*max_entries)[1];
} events SEC(".maps");

INLINE u64 key_in(u32 number)
{
	struct slot *slot = number ? bpf_map_lookup_elem(&slots, &number) : 0;
	return slot ? *(volatile u64 *)&slot->key : 0;
}

INLINE u64 key_of(struct task_struct *p) { return key_in(slot_of(p)); }

INLINE u64 queue_of(u64 cpu) { return is_shared ? SHARED_QUEUE : cpu; }

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

/*
 * Number of threads of a CPU's queue that can be among the c oldest. With one queue, threads running on other
 * CPUs take places.
 */
INLINE u64 places(struct control *c, struct cpu_state *s)
{
	u64 oldest = c->oldest, others = 0;
	if (is_shared)
		others = c->tagged_running - (s->running == RUNS_TAGGED);
	return oldest > others ? oldest - others : 1;
}

/* Counts the threads of a queue that are older than a key, up to a limit. */
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
	kick_cpu(cpu, flags);
}

/* Returns the CPU that runs the youngest request, among those that a thread may use. */
INLINE u64 cpu_of_youngest(struct task_struct *p, u64 cpu)
{
	struct bpf_iter_num it;
	u64 youngest = 0;
	int *other;
	bpf_iter_num_new(&it, 0, cpus_count);
	while ((other = bpf_iter_num_next(&it))) {
		u32 number = *other;
		struct cpu_state *s = state_of_cpu(number);
		if (!s || s->running != RUNS_TAGGED || !may_run_on(p, number))
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

/* Makes a CPU decide again if a request with this key goes before its running thread. */
INLINE void interrupt(struct control *c, u32 cpu, u64 key, u64 flags, u64 now)
{
	struct cpu_state *s = state_of_cpu(cpu);
	if (!s)
		return;
	if (s->running == RUNS_NOTHING) {
		kick(s, cpu, kick_of_others(flags));
	} else if (s->is_out_of_turn) {
		return;
	} else if (s->running == RUNS_UNTAGGED) {
		if (credit_of(s, c, now) <= 0)
			kick(s, cpu, SCX_KICK_PREEMPT);
	} else if (s->running == RUNS_TAGGED) {
		u64 running = key_in(s->running_slot);
		/* Calling `places` twice keeps the verifier from exploring each value of the count. */
		if (!running
		    || (is_before(key, running) && older_in(queue_of(cpu), running, places(c, s)) + 1 >= places(c, s)))
			kick(s, cpu, SCX_KICK_PREEMPT);
	}
}

INLINE void interrupt_for_untagged(struct control *c, u32 cpu, u64 flags, u64 now)
{
	struct cpu_state *s = state_of_cpu(cpu);
	if (!s)
		return;
	if (s->running == RUNS_NOTHING)
		kick(s, cpu, kick_of_others(flags));
	else if (s->running == RUNS_TAGGED && !s->is_out_of_turn && credit_of(s, c, now) > 0)
		kick(s, cpu, SCX_KICK_PREEMPT);
}

INLINE void enqueue_tagged(struct control *c, struct task_struct *p, u32 cpu, u64 key, u64 flags, u64 now)
{
	u32 chosen = cpu;
	note(c, EVENT_QUEUED, cpu, p->pid, key, 0, 0, now);
	insert_by(key, p, queue_of(cpu), c->slice_ns, flags);
	if (is_shared)
		chosen = cpu_of_youngest(p, cpu);
	interrupt(c, chosen, key, flags, now);
}

int enqueue(u64 *ctx)
{
	struct task_struct *p = (struct task_struct *)ctx[0];
	u64 flags = ctx[1], now = bpf_ktime_get_ns();
	u32 cpu = cpu_of(p);
	struct control *c = the_control();
	struct task_state *t = state_of(p);
	if (!c)
		return 0;
	if (is_kernel_thread_of_a_cpu(p) || !t) {
		enqueue_kernel_thread(c, p, cpu, flags);
		return 0;
	}
	note_wait(t, now);
	u64 key = key_of(p);
	if (key) {
		enqueue_tagged(c, p, cpu, key, flags, now);
	} else {
		insert_by_weighted_time(c, p, t, UNTAGGED_QUEUE, flags);
		interrupt_for_untagged(c, cpu, flags, now);
	}
	if (p->nr_cpus_allowed > 1) {
		s32 idle = take_idle_cpu(p);
		if (idle >= 0)
			kick_cpu(idle, SCX_KICK_IDLE);
	}
	return 0;
}

int dequeue(u64 *ctx)
{
	struct task_struct *p = (struct task_struct *)ctx[0];
	struct control *c = the_control();
	if (c && log_entries && slot_of(p))
		note(c, EVENT_LEFT, cpu_of(p), p->pid, 0, 0, 0, bpf_ktime_get_ns());
	return 0;
}

/* Runs the thread that has waited too long, if there is one. */
INLINE int rescue(struct control *c, struct cpu_state *s, u64 cpu, u64 now)
{
	u64 queue, thread = impatient(c, s, queue_of(cpu), cpu, now, &queue);
	if (!thread)
		return 0;
	note(c, EVENT_RESCUED, cpu, thread, 0, 0, 0, now);
	s->is_out_of_turn = move(queue, thread);
	return s->is_out_of_turn;
}

/*
 * The rule: among the c oldest, the running one included, the least recently served is next. Returns true if
 * a tagged thread continues or starts. src/choice.rs implements the same rule in Rust.
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
		if (is_shared && !may_run_on(p, cpu))
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

/* Moves the next thread to the CPU; none if the previous one continues or no thread waits. */
INLINE void decide(struct control *c, struct cpu_state *s, u64 cpu, struct task_struct *before, u64 now)
{
	int is_untagged = before && !key_of(before);
	struct task_struct *tagged = is_untagged ? 0 : before, *untagged = is_untagged ? before : 0;
	if (rescue(c, s, cpu, now))
		return;
	if (credit_of(s, c, now) > 0 && serve_by_weighted_time(s, untagged, cpu, now))
		return;
	if (choose(c, s, cpu, tagged, now))
		return;
	if (!is_shared && steal(s, cpu))
		return;
	serve_by_weighted_time(s, untagged, cpu, now);
}

int dispatch(u64 *ctx)
{
	u64 cpu = cpu_of_cid(ctx[0]);
	struct task_struct *before = (struct task_struct *)ctx[1];
	u64 now = bpf_ktime_get_ns();
	struct control *c = the_control();
	struct cpu_state *s = state_of_cpu(cpu);
	if (!c || !s)
		return 0;
	if (before && !(before->scx.flags & SCX_TASK_QUEUED))
		before = 0;
	s->asked_at = (u32)now;
	s->is_out_of_turn = 0;
	decide(c, s, cpu, before, now);
	let_continue(c, s, before);
	return 0;
}

int running(u64 *ctx)
{
	struct task_struct *p = (struct task_struct *)ctx[0];
	u64 now = bpf_ktime_get_ns();
	u32 cpu = cpu_of(p), slot = slot_of(p);
	struct control *c = the_control();
	struct cpu_state *s = state_of_cpu(cpu);
	if (!c || !s)
		return 0;
	u64 key = key_in(slot);
	s->running_slot = slot;
	s->running_key = key;
	note_begin(c, s, p, is_kernel_thread_of_a_cpu(p) ? RUNS_KERNEL_THREAD : key ? RUNS_TAGGED : RUNS_UNTAGGED, now);
	if (s->running == RUNS_TAGGED)
		__sync_fetch_and_add(&c->tagged_running, 1);
	if (slot)
		note(c, EVENT_RUNNING, cpu, p->pid, key, 0, 0, now);
	return 0;
}

int stopping(u64 *ctx)
{
	struct task_struct *p = (struct task_struct *)ctx[0];
	u64 now = bpf_ktime_get_ns();
	u32 cpu = cpu_of(p);
	struct control *c = the_control();
	struct cpu_state *s = state_of_cpu(cpu);
	if (!c || !s)
		return 0;
	charge(c, s, p, (u8)ctx[1], now);
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

/*
 * Detects changes without an event: the end of a slice, a new request of the thread, and credit gained or
 * used up.
 */
int tick(u64 *ctx)
{
	struct task_struct *p = (struct task_struct *)ctx[0];
	u64 now = bpf_ktime_get_ns();
	u32 cpu = cpu_of(p);
	struct control *c = the_control();
	struct cpu_state *s = state_of_cpu(cpu);
	if (!c || !s || s->running == RUNS_KERNEL_THREAD)
		return 0;
	s64 credit = credit_of(s, c, now);
	int others_wait = scx_bpf_dsq_nr_queued(queue_of(cpu)) > 0;
	int untagged_wait = scx_bpf_dsq_nr_queued(UNTAGGED_QUEUE) > 0;
	int is_another = key_of(p) != s->running_key, is_over = is_slice(c, over_of_slice(s, now));
	int changes = (others_wait || untagged_wait) && (is_another || is_over);
	if (s->is_out_of_turn)
		changes = (others_wait || untagged_wait) && is_over;
	else if (s->running == RUNS_TAGGED)
		changes = changes || (untagged_wait && credit > 0);
	else
		changes = changes || (others_wait && credit <= 0);
	if (changes)
		kick_cpu(cpu, SCX_KICK_PREEMPT);
	return 0;
}

int init(u64 *ctx)
{
	struct bpf_iter_num it;
	int *cpu, error = 0;
	have_arena();
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

const char declared_license[] SEC("license") = "Dual MIT/GPL";
