/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What the scheduler shares with programs: memory that both sides have mapped. src/layout.rs and the crate of hints say
 * the same in Rust.
 */
#ifndef TAILWRIGHT_LAYOUT_H
#define TAILWRIGHT_LAYOUT_H

#include "kernel.h"

#define MAX_CPUS 1024

/* The request that a thread works for, in a cache line of its own. The first one is that of the scheduler. */
struct slot {
	u64 key;   /* smaller runs first; 0: no request. Of the scheduler's own: 1 while it schedules */
	u32 owner; /* taken by a thread: not 0 */
	u32 unused[13];
};

/* Written by whoever controls the scheduler, at any time. */
struct control {
	u32 oldest;            /* c: how many of the oldest share a queue's CPUs */
	u32 untagged_permille; /* of a CPU's time that threads without a request have before those with one */
	u64 untagged_burst_ns; /* the most that they have of it at once */
	u64 slice_ns;
	u64 patience_ns; /* who has waited this long has a slice out of turn */
	u32 tagged_running;    /* how many run */
	u32 overdue_ms;        /* half of what the kernel's watchdog bears; set before the start */
	u64 untagged_vruntime; /* the largest with which a thread without a request began to run */
	u64 log_next;    /* events that happened, also those for which the log had no room */
	u32 exit_kind;   /* the kernel's reason for ending the scheduler, and its words */
	u32 unused;
	char exit_reason[128];
	char exit_message[256];
	u64 group; /* of the scheduler above: the kernel's number of the control group that has another one; 0: none */
};

enum running { RUNS_NOTHING, RUNS_UNTAGGED, RUNS_TAGGED, RUNS_KERNEL_THREAD };

/* Written by its CPU, or under the lock of its run queue. */
struct cpu_state {
	u64 since;          /* when the running thread began */
	u64 charged_at;     /* until when untagged time was charged */
	u64 refilled_at;    /* until when the share of untagged threads was credited */
	u64 scanned_at;     /* when those who wait were last looked at */
	s64 credit_ns;      /* time that untagged threads may take before tagged ones */
	u32 running;        /* enum running */
	u32 running_slot;   /* of a tagged thread */
	u64 running_key;    /* of its request when it began */
	/* Statistics, ever since the start. */
	u64 tagged_ns;
	u64 untagged_ns;
	u64 kernel_thread_ns;
	u64 choices;        /* times at which the rule chose a tagged thread */
	u64 turns;          /* of these: another one than the one that ran */
	u64 kicks;          /* times at which an arrival interrupted a younger one */
	u64 rescues;        /* slices out of turn */
	u64 steals;         /* threads taken from the queue of another CPU */
	u32 asked_at;       /* the low half of when the kernel last asked who is next */
	u16 choice_us;      /* what choosing the running thread took, at most half a slice: it counts to the slice */
	u8 is_idle;         /* in a hierarchy of schedulers, where the kernel does not keep it */
	u8 is_out_of_turn;  /* it serves who has waited too long */
};

/* Kept by the kernel with each thread. */
struct task_state {
	u64 served_at; /* when it last stopped running with a slot; 0: never */
	u64 queued_at; /* since when it has waited for a slice; 0: it has had one, or slept */
	u64 had_ns;    /* what it has had of that slice */
	u64 vruntime;  /* weighted time that it ran untagged */
};

enum event_kind {
	EVENT_QUEUED = 1,
	EVENT_LEFT,
	EVENT_CHOSEN,
	EVENT_KEPT,
	EVENT_RESCUED,
	EVENT_RUNNING,
	EVENT_STOPPED,
	EVENT_LOOKS, /* begins to look at a queue that other CPUs change meanwhile */
};

struct event {
	u64 time_ns;
	u64 key;
	u64 other_key;
	u32 thread;
	u32 other; /* the thread that could have continued; 0: none */
	u16 cpu;
	u16 kind;
	u32 oldest;
};

#endif
