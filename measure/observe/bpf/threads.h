/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What the CPUs do to threads that read observed sockets: when these wait and for whom, and what interrupts them.
 *
 * A thread is known from its first read on. Each program leaves at once while no known thread is concerned: none comes,
 * goes, is woken, is interrupted or waits for this CPU. Tables have fixed sizes and may forget: a thread whose place was
 * taken by another one is not known until it reads again.
 *
 * Kernels pass over tracepoints now and then, for milliseconds on one CPU, without a trace. So what is known is compared
 * with what happens: a thread that acts without having come, or leaves a CPU that another one had, makes the time since the
 * last event unseen, and nobody's.
 */
#ifndef TAILWRIGHT_THREADS_H
#define TAILWRIGHT_THREADS_H

#include "events.h"

#define THREADS 4096
#define CPUS 1024

/*
 * What is known of a thread; whoever changes it holds the lock of its run queue, or is it. When another thread takes the
 * place, both may change it for a moment: then times are wrong once, but the counts of waiters stay right.
 */
struct thread_record {
	u64 in;    /* when it was last switched in */
	u64 out;   /* when it last left its CPU */
	u64 woken; /* when it was woken after that, or 0 */
	u32 interrupt_ns;
	u32 softirq_ns; /* what interrupts took from it while it ran; these repeat after 4 s */
	u32 cpu;        /* whose queue it waits in, or has waited in */
	u32 waits_on;   /* 1 + the CPU that counts it among its waiters, or 0; see begin_wait */
	u32 was_idle;   /* whether that CPU was idle when the thread was put into its queue */
	u64 stolen;     /* the clock of steal of its CPU when it was woken, or CLOCK_UNKNOWN */
	u64 freed;      /* when its last write to an observed socket returned, or 0 */
	u64 throttled;  /* since when a CPU quota keeps it from running, or 0 */
	u64 throttle_clock; /* the throttle clock of its queue at that moment; see throttle_clock */
};

/* What interrupts of one sort take from a CPU. */
struct interruption {
	u64 ns;    /* what they took since `since` of the CPU */
	u64 begin; /* 0: nobody was concerned when it began */
	u64 end;   /* of the last one */
};

/* What is known of a CPU; times count only while known threads wait for it. Each is in cache lines of its own. */
struct cpu_record {
	u32 waiters;
	u32 occupant;      /* 1 + the number of the thread that has it; 0 before its first switch */
	u32 is_first_wait; /* `since` is when the first waiter began to wait: there was no switch since then */
	u64 since;  /* when the current thread began to run, or the first waiter to wait if that was later */
	u64 stolen; /* the clock of steal then, or CLOCK_UNKNOWN */
	struct interruption interrupt;
	struct interruption softirq;
} __attribute__((aligned(128)));

#define CLOCK_UNKNOWN (~0ull)

u32 thread_ids[THREADS]; /* whose the records are; apart, because every switch of the machine looks here */
struct thread_record threads[THREADS];
struct cpu_record cpus[CPUS];

INLINE u32 thread_slot(u32 thread) { return thread & (THREADS - 1); }

/* The idle thread has number 0 and is never known. */
INLINE int is_known(u32 thread) { return thread && thread_ids[thread_slot(thread)] == thread; }

INLINE struct thread_record *record_of(u32 thread) { return &threads[thread_slot(thread)]; }

INLINE struct cpu_record *cpu_of(u32 cpu) { return &cpus[cpu & (CPUS - 1)]; }

INLINE u64 later(u64 a, u64 b) { return a > b ? a : b; }

/*
 * What the hypervisor has taken in all from the CPU in whose queue a thread is, as the scheduler knows it: it looks at each
 * switch and whenever a thread is queued. 0 where the kernel has no such clock.
 */
INLINE u64 steal_clock(const struct task_struct *who)
{
	if (!FIELD_EXISTS(((struct rq *)0)->prev_steal_time_rq) || !FIELD_EXISTS(((struct sched_entity *)0)->cfs_rq))
		return 0;
	return who->se.cfs_rq->rq->prev_steal_time_rq;
}

/* What was taken between two readings; 0 if the first is unknown. */
INLINE u64 stolen_between(u64 before, u64 after) { return after > before ? after - before : 0; }

INLINE void begin_time(struct cpu_record *here, u64 now, u64 stolen, int is_first_wait)
{
	here->since = now;
	here->stolen = stolen;
	here->is_first_wait = is_first_wait;
	here->interrupt.ns = 0;
	here->softirq.ns = 0;
}

/*
 * Exchanges which CPU counts the thread. What is exchanged away is counted off once, whoever else does the same, and what
 * is put in was counted before: no count is ever below the number of records that name its CPU.
 */
INLINE void wait_on(struct thread_record *record, u32 waits_on)
{
	u32 before = __sync_lock_test_and_set(&record->waits_on, waits_on);
	if (before)
		__sync_fetch_and_add(&cpu_of(before - 1)->waiters, -1);
}

INLINE void begin_wait(struct thread_record *record, u32 cpu, u64 now, u64 stolen)
{
	struct cpu_record *there = cpu_of(cpu);
	record->cpu = cpu;
	record->was_idle = there->occupant == 1;
	if (there->waiters == 0)
		begin_time(there, now, stolen, 1);
	__sync_fetch_and_add(&there->waiters, 1);
	wait_on(record, cpu + 1);
}

INLINE void end_wait(struct thread_record *record)
{
	if (record->waits_on)
		wait_on(record, 0);
}

/*
 * Says who had the CPU while a known thread waited for it. Nothing where it was idle, without interrupts and steal, since
 * the first of them began to wait: each of them has that it was idle then.
 */
INLINE void report_occupant(const struct cpu_record *here, u32 cpu, const struct task_struct *who, u64 now, u64 clock)
{
	struct event *event;
	u64 stolen = stolen_between(here->stolen, clock);
	int is_seen = here->occupant == (u32)who->pid + 1;
	if (is_seen && who->pid == 0 && here->is_first_wait && here->softirq.ns == 0 && here->interrupt.ns == 0 && stolen == 0)
		return;
	event = begin_event(EVENT_OCCUPANT, now, 0);
	if (!event)
		return;
	event->flags = is_seen ? 0 : FLAG_UNSEEN;
	event->earlier = here->since;
	event->socket = stolen;
	event->thread = who->pid;
	event->process = who->tgid;
	event->local_port = cpu;
	event->begin = here->interrupt.ns;
	event->end = here->softirq.ns;
	bpf_probe_read_kernel(event->peer, sizeof(event->peer), who->comm);
	end_event(event);
}

/* Priorities of the fair class begin here; quotas do not concern those below. */
#define FAIR_PRIORITY 100

/*
 * Whether the CPU quota of a group keeps a thread from running. Since Linux 6.18 threads are throttled one by one, when
 * they return to user space; before that whole queues are, whatever is in them.
 */
INLINE int is_throttled(const struct task_struct *who)
{
	if (FIELD_EXISTS(((struct task_struct *)0)->throttled))
		return who->throttled;
	if (!FIELD_EXISTS(((struct cfs_rq *)0)->throttle_count) || !FIELD_EXISTS(((struct sched_entity *)0)->cfs_rq))
		return 0;
	return who->prio >= FAIR_PRIORITY && who->se.cfs_rq->throttle_count > 0;
}

/*
 * For how long the queue of a thread has been throttled in all until now, as the kernel counts it: times that are over
 * plus, while it `is_going_on`, the current one. 0 where the kernel has no such clock.
 */
INLINE u64 throttle_clock(const struct task_struct *who, int is_going_on)
{
	const struct cfs_rq *queue;
	u64 since, now;
	if (!FIELD_EXISTS(((struct sched_entity *)0)->cfs_rq) || !FIELD_EXISTS(((struct rq *)0)->clock))
		return 0;
	queue = who->se.cfs_rq;
	if (FIELD_EXISTS(queue->throttled_clock_self_time)) {
		since = queue->throttled_clock_self;
		now = queue->rq->clock;
		return queue->throttled_clock_self_time + (is_going_on && since && now > since ? now - since : 0);
	}
	return 0;
}

INLINE void begin_throttle(struct thread_record *record, const struct task_struct *who, u64 now)
{
	record->throttled = now;
	record->throttle_clock = throttle_clock(who, 1);
}

/*
 * A thread that was throttled runs again, or is moved: for how long the quota kept it. What follows until now it has
 * waited in the queue as others do. Without a clock all of the time counts.
 */
INLINE void report_throttle(struct thread_record *record, const struct task_struct *who, u64 now)
{
	u64 since = record->throttled, clock = throttle_clock(who, 0), whole = now - since, taken = whole;
	struct event *event;
	record->throttled = 0;
	if (clock > record->throttle_clock && clock - record->throttle_clock < whole)
		taken = clock - record->throttle_clock;
	event = begin_event(EVENT_THROTTLED, now, taken);
	if (!event)
		return;
	event->earlier = since;
	event->thread = who->pid;
	event->process = who->tgid;
	end_event(event);
}

INLINE int is_off_cpu(const struct thread_record *record) { return record->out > record->in; }

/* A thread is on a CPU, and was not seen to come there. */
INLINE void forget(struct thread_record *record, u64 now)
{
	record->in = now;
	record->out = 0;
	record->woken = 0;
	record->interrupt_ns = 0;
	record->softirq_ns = 0;
	record->was_idle = 0;
	record->freed = 0;
	record->throttled = 0;
}

/* A known thread leaves its CPU: reports how it had come there, and in which state it goes. */
INLINE void leave(const struct task_struct *who, u32 cpu, u32 state, u64 now, u64 stolen)
{
	struct thread_record *record = record_of(who->pid);
	u64 woken = record->woken;
	int came_unseen = is_off_cpu(record);
	struct event *event;
	end_wait(record);
	if (came_unseen)
		forget(record, now - 1);
	/* After all else: verifiers of older kernels lose an event over the exchange in end_wait. */
	event = begin_event(EVENT_LEAVE, now, woken);
	if (event) {
		event->flags = (record->was_idle ? FLAG_IDLE : 0) | (READ_BITS(who, in_iowait) ? FLAG_WAITS_FOR_IO : 0);
		event->earlier = came_unseen ? 0 : record->in;
		event->thread = who->pid;
		event->process = who->tgid;
		event->local_port = record->cpu;
		event->peer_port = state;
		event->begin = record->interrupt_ns;
		event->end = record->softirq_ns;
		end_event(event);
	}
	record->out = now;
	record->woken = 0;
	record->throttled = 0;
	if (state == 0) {
		begin_wait(record, cpu, now, stolen);
		if (is_throttled(who))
			begin_throttle(record, who, now);
	}
}

SEC("tp_btf/sched_switch")
int tw_switch(u64 *context)
{
	const struct task_struct *leaving = (const struct task_struct *)context[1];
	const struct task_struct *coming = (const struct task_struct *)context[2];
	u32 cpu = bpf_get_smp_processor_id();
	struct cpu_record *here = cpu_of(cpu);
	int leaves = is_known(leaving->pid), comes = is_known(coming->pid);
	u64 now, stolen;
	if (!leaves && !comes && here->waiters == 0) {
		here->occupant = coming->pid + 1;
		return 0;
	}
	now = bpf_ktime_get_ns();
	stolen = steal_clock(coming);
	if (here->waiters)
		report_occupant(here, cpu, leaving, now, stolen);
	here->occupant = coming->pid + 1;
	begin_time(here, now, stolen, 0);
	if (leaves)
		leave(leaving, cpu, (u8)context[0] ? 0 : (u32)context[3], now, stolen);
	if (comes) {
		struct thread_record *record = record_of(coming->pid);
		end_wait(record);
		record->in = now;
		if (record->throttled)
			report_throttle(record, coming, now);
	}
	return 0;
}

/* Somebody decides to wake a thread, which may take a while: an idle CPU has to be woken first. */
SEC("tp_btf/sched_waking")
int tw_waking(u64 *context)
{
	const struct task_struct *who = (const struct task_struct *)context[0];
	u32 thread = who->pid;
	struct thread_record *record = record_of(thread);
	if (is_known(thread) && is_off_cpu(record) && !record->woken) {
		record->woken = bpf_ktime_get_ns();
		record->stolen = steal_clock(who);
	}
	return 0;
}

/* An idle CPU was taken away by the hypervisor while it was being woken for a thread. */
INLINE void report_stolen_wakeup(const struct thread_record *record, u64 now, u64 stolen)
{
	struct event *event = begin_event(EVENT_OCCUPANT, now, 0);
	if (!event)
		return;
	event->earlier = record->woken;
	event->socket = stolen;
	event->local_port = record->cpu;
	end_event(event);
}

/* A thread is put into the queue of a CPU. */
SEC("tp_btf/sched_wakeup")
int tw_wakeup(u64 *context)
{
	const struct task_struct *who = (const struct task_struct *)context[0];
	struct thread_record *record = record_of(who->pid);
	u64 now, clock, stolen;
	if (!is_known(who->pid) || !is_off_cpu(record) || record->waits_on)
		return 0;
	now = bpf_ktime_get_ns();
	clock = steal_clock(who);
	/* It was decided to wake the thread before it had left its CPU. */
	if (!record->woken) {
		record->woken = now;
		record->stolen = clock;
	}
	begin_wait(record, who->wake_cpu, now, clock);
	if (is_throttled(who))
		begin_throttle(record, who, now);
	stolen = stolen_between(record->stolen, clock);
	if (record->was_idle && stolen)
		report_stolen_wakeup(record, now, stolen);
	return 0;
}

/* A thread that waits is moved to the queue of another CPU: says who had the first one until now. */
SEC("tp_btf/sched_migrate_task")
int tw_migrate(u64 *context)
{
	const struct task_struct *who = (const struct task_struct *)context[0];
	u32 cpu = (u32)context[1], before;
	struct thread_record *record = record_of(who->pid);
	struct cpu_record *there;
	struct event *event;
	u64 now, clock;
	if (!is_known(who->pid))
		return 0;
	record->stolen = CLOCK_UNKNOWN;
	before = record->waits_on;
	if (!before || before == cpu + 1)
		return 0;
	now = bpf_ktime_get_ns();
	if (FIELD_EXISTS(((struct rq *)0)->curr) && FIELD_EXISTS(((struct sched_entity *)0)->cfs_rq)) {
		there = cpu_of(before - 1);
		clock = steal_clock(who);
		report_occupant(there, before - 1, who->se.cfs_rq->rq->curr, now, clock);
		begin_time(there, now, clock, 0);
	}
	if (record->throttled)
		report_throttle(record, who, now);
	event = begin_event(EVENT_MOVE, now, 0);
	if (event) {
		event->flags = record->was_idle ? FLAG_IDLE : 0;
		event->thread = who->pid;
		event->process = who->tgid;
		event->local_port = before - 1;
		end_event(event);
	}
	begin_wait(record, cpu, now, CLOCK_UNKNOWN);
	return 0;
}

/* Whether an interrupt on this CPU concerns a known thread: it runs, or it waits for the CPU. */
INLINE int is_concerned(const struct cpu_record *here, u32 thread) { return here->waiters || is_known(thread); }

/* Where in the kernel an interruption begins. */
INLINE void begin_interruption(const struct cpu_record *here, struct interruption *what)
{
	if (is_concerned(here, (u32)bpf_get_current_pid_tgid()))
		what->begin = bpf_ktime_get_ns();
}

/* Where it ends: what it took, from those who wait, too; whoever calls takes it from the thread. */
INLINE u64 end_interruption(const struct cpu_record *here, struct interruption *what, u32 thread)
{
	u64 now, from, taken;
	if (!what->begin && !is_concerned(here, thread))
		return 0;
	now = bpf_ktime_get_ns();
	/* Nobody was concerned when it began: a thread that waits has been woken since, and there was no switch. */
	from = what->begin ? what->begin : later(here->since, what->end);
	taken = now > from ? now - from : 0;
	what->ns += now - here->since < taken ? now - here->since : taken;
	what->begin = 0;
	what->end = now;
	return taken;
}

SEC("tp_btf/softirq_entry")
int tw_softirq_entry(u64 *context)
{
	struct cpu_record *here = cpu_of(bpf_get_smp_processor_id());
	begin_interruption(here, &here->softirq);
	return 0;
}

SEC("tp_btf/softirq_exit")
int tw_softirq_exit(u64 *context)
{
	struct cpu_record *here = cpu_of(bpf_get_smp_processor_id());
	u32 thread = bpf_get_current_pid_tgid();
	u64 taken = end_interruption(here, &here->softirq, thread);
	if (taken && is_known(thread))
		record_of(thread)->softirq_ns += taken;
	return 0;
}

SEC("tp_btf/irq_handler_entry")
int tw_interrupt_entry(u64 *context)
{
	struct cpu_record *here = cpu_of(bpf_get_smp_processor_id());
	begin_interruption(here, &here->interrupt);
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int tw_interrupt_exit(u64 *context)
{
	struct cpu_record *here = cpu_of(bpf_get_smp_processor_id());
	u32 thread = bpf_get_current_pid_tgid();
	u64 taken = end_interruption(here, &here->interrupt, thread);
	if (taken && is_known(thread))
		record_of(thread)->interrupt_ns += taken;
	/* It came in the middle of a softirq, which is not to be blamed for it. */
	if (here->softirq.begin)
		here->softirq.begin += taken;
	return 0;
}

/*
 * Adds how the thread came to its CPU and what interrupts took from it. Nothing on its first read, and where it was not
 * seen to come: it is known from then on, when it has been running for a while.
 */
INLINE void set_schedule(struct event *event)
{
	u32 thread = event->thread;
	struct thread_record *record = record_of(thread);
	if (thread_ids[thread_slot(thread)] != thread || is_off_cpu(record)) {
		end_wait(record);
		forget(record, event->time);
		thread_ids[thread_slot(thread)] = thread;
		return;
	}
	event->earlier = record->in;
	event->peer_port = record->cpu;
	event->flags |= record->was_idle ? FLAG_IDLE : 0;
	*(u64 *)&event->peer[0] = record->woken;
	event->peer[2] = record->interrupt_ns;
	event->peer[3] = record->softirq_ns;
	event->freed = record->freed;
}

#endif
