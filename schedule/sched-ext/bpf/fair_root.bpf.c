// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * Schedules all ordinary threads of the machine except those of one control group, which has another scheduler. It is
 * dual licensed like oldest_first.bpf.c.
 *
 * The threads share CPUs by their weights, in order of weighted time. They have a reserved share of each CPU, and the
 * time that the group leaves; the group goes first for the rest. Kernel threads bound to a CPU go before all, and a
 * thread that has waited too long runs one slice out of turn.
 *
 * These threads use the fields of struct control and struct cpu_state for threads without a request.
 */
#define IN_HIERARCHY
#include "common.h"

/* Set by the loader before the programs are loaded. */
const volatile u64 all_cids; /* address in the arena of the set of all CPUs */
const volatile u64 SCX_CAP_ENQ;
const volatile u64 SCX_CAP_PREEMPT;

#define EBUSY 16

int enqueue(u64 *ctx)
{
	struct task_struct *p = (struct task_struct *)ctx[0];
	u64 flags = ctx[1], now = bpf_ktime_get_ns();
	u32 cpu = cpu_of(p);
	struct control *c = the_control();
	struct task_state *t = state_of(p);
	struct cpu_state *s = state_of_cpu(cpu);
	if (!c || !s)
		return 0;
	if (is_kernel_thread_of_a_cpu(p) || !t) {
		enqueue_kernel_thread(c, p, cpu, flags);
		return 0;
	}
	note_wait(t, now);
	insert_by_weighted_time(c, p, t, UNTAGGED_QUEUE, flags);
	if (s->running == RUNS_NOTHING) {
		u64 with = credit_of(s, c, now) > 0 ? kick_of_others(flags) : SCX_KICK_IDLE;
		kick_cpu(cpu, with);
	}
	if (p->nr_cpus_allowed > 1) {
		s32 idle = take_idle_cpu(p);
		if (idle >= 0)
			kick_cpu(idle, SCX_KICK_IDLE);
	}
	return 0;
}

/* Moves the next thread to the CPU; none if the previous one continues, or no thread waits. */
INLINE void decide(struct control *c, struct cpu_state *s, u32 cpu, struct task_struct *before, u64 now)
{
	u64 queue, group = c->group, thread = impatient(c, s, UNTAGGED_QUEUE, cpu, now, &queue);
	if (thread && move(queue, thread))
		return;
	if (credit_of(s, c, now) > 0 && serve_by_weighted_time(s, before, cpu, now))
		return;
	if (group && is_true(scx_bpf_sub_dispatch(group))) {
		s->choices++;
		return;
	}
	/* A CPU woken in vain sleeps again, without a notification by the kernel. */
	if (!serve_by_weighted_time(s, before, cpu, now))
		s->is_idle = 1;
}

int dispatch(u64 *ctx)
{
	u32 cpu = cpu_of_cid(ctx[0]);
	struct task_struct *before = (struct task_struct *)ctx[1];
	u64 now = bpf_ktime_get_ns();
	struct control *c = the_control();
	struct cpu_state *s = state_of_cpu(cpu);
	if (!c || !s)
		return 0;
	if (before && !(before->scx.flags & SCX_TASK_QUEUED))
		before = 0;
	s->asked_at = (u32)now;
	decide(c, s, cpu, before, now);
	return 0;
}

int running(u64 *ctx)
{
	struct task_struct *p = (struct task_struct *)ctx[0];
	struct control *c = the_control();
	struct cpu_state *s = state_of_cpu(cpu_of(p));
	if (!c || !s)
		return 0;
	s->is_idle = 0;
	note_begin(c, s, p, is_kernel_thread_of_a_cpu(p) ? RUNS_KERNEL_THREAD : RUNS_UNTAGGED, bpf_ktime_get_ns());
	return 0;
}

int stopping(u64 *ctx)
{
	struct task_struct *p = (struct task_struct *)ctx[0];
	struct control *c = the_control();
	struct cpu_state *s = state_of_cpu(cpu_of(p));
	if (!c || !s)
		return 0;
	charge(c, s, p, (u8)ctx[1], bpf_ktime_get_ns());
	s->running = RUNS_NOTHING;
	return 0;
}

/* It is unknown whether threads of the group wait, so the group is offered the CPU after each slice. */
int tick(u64 *ctx)
{
	struct task_struct *p = (struct task_struct *)ctx[0];
	u64 now = bpf_ktime_get_ns();
	u32 cpu = cpu_of(p);
	struct control *c = the_control();
	struct cpu_state *s = state_of_cpu(cpu);
	if (c && s && s->running == RUNS_UNTAGGED && is_slice(c, over_of_slice(s, now)))
		kick_cpu(cpu, SCX_KICK_PREEMPT);
	return 0;
}

/*
 * One group at a time may have a scheduler. It may use all CPUs, and interrupt threads; dispatch() then chooses the next
 * thread.
 */
int sub_attach(u64 *ctx)
{
	struct scx_sub_attach_args *args = (struct scx_sub_attach_args *)ctx[0];
	struct control *c = the_control();
	if (!c || c->group)
		return -EBUSY;
	have_arena();
	u64 group = args->ops->sub_cgroup_id;
	s32 error = scx_bpf_sub_grant(group, SCX_CAP_ENQ | SCX_CAP_PREEMPT, all_cids, 0);
	if (!error)
		c->group = group;
	return error;
}

int sub_detach(u64 *ctx)
{
	struct scx_sub_detach_args *args = (struct scx_sub_detach_args *)ctx[0];
	struct control *c = the_control();
	if (c && c->group == args->ops->sub_cgroup_id)
		c->group = 0;
	return 0;
}

int init(u64 *ctx)
{
	have_arena();
	return scx_bpf_create_dsq(UNTAGGED_QUEUE, -1);
}

const char declared_license[] SEC("license") = "Dual MIT/GPL";
