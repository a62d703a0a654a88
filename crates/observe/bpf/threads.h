/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What the CPUs do to threads that read observed sockets: when these wait and for whom, and what interrupts them.
 *
 * A thread is known from its first read on. Each program leaves at once while no known thread is concerned: none comes,
 * goes, is woken, is interrupted or waits for this CPU. Tables have fixed sizes and may forget: a thread whose place was
 * taken by another one is not known until it reads again.
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
};

/* What interrupts of one sort take from a CPU. */
struct interruption {
	u64 ns;    /* what they took since `since` of the CPU */
	u64 begin; /* 0: nobody was concerned when it began */
	u64 end;   /* of the last one */
};

/* What is known of a CPU; times count only while known threads wait for it. */
struct cpu_record {
	u32 waiters;
	u64 since; /* when the current thread began to run, or the first waiter to wait if that was later */
	struct interruption interrupt;
	struct interruption softirq;
};

u32 thread_ids[THREADS]; /* whose the records are; apart, because every switch of the machine looks here */
struct thread_record threads[THREADS];
struct cpu_record cpus[CPUS];

INLINE u32 thread_slot(u32 thread) { return thread & (THREADS - 1); }

/* The idle thread has number 0 and is never known. */
INLINE int is_known(u32 thread) { return thread && thread_ids[thread_slot(thread)] == thread; }

INLINE struct thread_record *record_of(u32 thread) { return &threads[thread_slot(thread)]; }

INLINE struct cpu_record *cpu_of(u32 cpu) { return &cpus[cpu & (CPUS - 1)]; }

INLINE u64 later(u64 a, u64 b) { return a > b ? a : b; }

INLINE void begin_time(struct cpu_record *here, u64 now)
{
	here->since = now;
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

INLINE void begin_wait(struct thread_record *record, u32 cpu, u64 now)
{
	struct cpu_record *there = cpu_of(cpu);
	record->cpu = cpu;
	if (there->waiters == 0)
		begin_time(there, now);
	__sync_fetch_and_add(&there->waiters, 1);
	wait_on(record, cpu + 1);
}

INLINE void end_wait(struct thread_record *record)
{
	if (record->waits_on)
		wait_on(record, 0);
}

/* Says who had the CPU while a known thread waited for it; nothing where it was idle without interrupts. */
INLINE void report_occupant(const struct cpu_record *here, u32 cpu, const struct task_struct *who, u64 now)
{
	struct event *event;
	if (who->pid == 0 && here->softirq.ns == 0 && here->interrupt.ns == 0)
		return;
	event = begin_event(EVENT_OCCUPANT, now, 0);
	if (!event)
		return;
	event->earlier = here->since;
	event->thread = who->pid;
	event->process = who->tgid;
	event->local_port = cpu;
	event->begin = here->interrupt.ns;
	event->end = here->softirq.ns;
	bpf_probe_read_kernel(event->peer, sizeof(event->peer), who->comm);
	end_event(event);
}

/* A known thread leaves its CPU: reports how it had come there, and in which state it goes. */
INLINE void leave(const struct task_struct *who, u32 cpu, u32 state, u64 now)
{
	struct thread_record *record = record_of(who->pid);
	struct event *event = begin_event(EVENT_LEAVE, now, record->woken);
	if (event) {
		event->earlier = record->in;
		event->socket = record->out;
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
	if (state == 0)
		begin_wait(record, cpu, now);
}

SEC("tp_btf/sched_switch")
int tw_switch(u64 *context)
{
	const struct task_struct *leaving = (const struct task_struct *)context[1];
	const struct task_struct *coming = (const struct task_struct *)context[2];
	u32 cpu = bpf_get_smp_processor_id();
	struct cpu_record *here = cpu_of(cpu);
	int leaves = is_known(leaving->pid), comes = is_known(coming->pid);
	u64 now;
	if (!leaves && !comes && here->waiters == 0)
		return 0;
	now = bpf_ktime_get_ns();
	if (here->waiters)
		report_occupant(here, cpu, leaving, now);
	begin_time(here, now);
	if (leaves)
		leave(leaving, cpu, (u8)context[0] ? 0 : (u32)context[3], now);
	if (comes) {
		struct thread_record *record = record_of(coming->pid);
		end_wait(record);
		record->in = now;
	}
	return 0;
}

INLINE int is_off_cpu(const struct thread_record *record) { return record->out > record->in; }

/* Somebody decides to wake a thread, which may take a while: an idle CPU has to be woken first. */
SEC("tp_btf/sched_waking")
int tw_waking(u64 *context)
{
	u32 thread = ((const struct task_struct *)context[0])->pid;
	struct thread_record *record = record_of(thread);
	if (is_known(thread) && is_off_cpu(record) && !record->woken)
		record->woken = bpf_ktime_get_ns();
	return 0;
}

/* A thread is put into the queue of a CPU. */
SEC("tp_btf/sched_wakeup")
int tw_wakeup(u64 *context)
{
	const struct task_struct *who = (const struct task_struct *)context[0];
	struct thread_record *record = record_of(who->pid);
	if (is_known(who->pid) && is_off_cpu(record) && !record->waits_on)
		begin_wait(record, who->wake_cpu, bpf_ktime_get_ns());
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
 * Adds how the thread came to its CPU and what interrupts took from it. Nothing on its first read: it is known from
 * then on, when it has been running for a while.
 */
INLINE void set_schedule(struct event *event)
{
	u32 thread = event->thread;
	struct thread_record *record = record_of(thread);
	if (thread_ids[thread_slot(thread)] != thread) {
		end_wait(record);
		record->in = event->time;
		record->out = 0;
		record->woken = 0;
		record->interrupt_ns = 0;
		record->softirq_ns = 0;
		thread_ids[thread_slot(thread)] = thread;
		return;
	}
	event->earlier = record->in;
	event->peer_port = record->cpu;
	*(u64 *)&event->peer[0] = record->woken;
	event->peer[2] = record->interrupt_ns;
	event->peer[3] = record->softirq_ns;
}

#endif
