/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Memory that the scheduler shares with programs, mapped on both sides. src/layout.rs and the crate sched-hint are the
 * same in Rust.
 */
#ifndef TAILWRIGHT_LAYOUT_H
#define TAILWRIGHT_LAYOUT_H

#include "kernel.h"

#define MAX_CPUS 1024

/* The request that a thread works for, in a separate cache line. The first slot is the scheduler's. */
struct slot {
	u64 key;   /* smaller runs first; 0: no request. Of the scheduler's own: 1 while it schedules */
	u32 owner; /* taken by a thread: not 0 */
	u32 unused[13];
};

/* Written at any time by the process that controls the scheduler. */
struct control {
	u32 oldest;            /* c: number of oldest requests that share a queue's CPUs */
	u32 untagged_permille; /* share of a CPU that threads without a request have before those with one */
	u64 untagged_burst_ns; /* maximum of it that they have at once */
	u64 slice_ns;
	u64 patience_ns; /* a thread that has waited this long runs a slice out of turn */
	u32 tagged_running;    /* number of running tagged threads */
	u32 overdue_ms;        /* half of the kernel's watchdog timeout; set before the start */
	u64 untagged_vruntime; /* maximum with which a thread without a request began to run */
	u64 log_next;    /* number of events, including those that did not fit into the log */
	u32 exit_kind;   /* the kernel's reason for ending the scheduler, with texts */
	u32 unused;
	char exit_reason[128];
	char exit_message[256];
	u64 group; /* of the scheduler above: the kernel's number of the control group that has another one; 0: none */
};

enum running { RUNS_NOTHING, RUNS_UNTAGGED, RUNS_TAGGED, RUNS_KERNEL_THREAD };

/* Written by its CPU, or under the lock of its run queue. */
struct cpu_state {
	u64 since;          /* time at which the running thread began */
	u64 charged_at;     /* time up to which untagged time was charged */
	u64 refilled_at;    /* time up to which the share of untagged threads was credited */
	u64 scanned_at;     /* time of the last search for starved threads */
	s64 credit_ns;      /* time that untagged threads may take before tagged ones */
	u32 running;        /* enum running */
	u32 running_slot;   /* of a tagged thread */
	u64 running_key;    /* of its request when it began */
	/* Statistics since the start. */
	u64 tagged_ns;
	u64 untagged_ns;
	u64 kernel_thread_ns;
	u64 choices;        /* number of times that the rule chose a tagged thread */
	u64 turns;          /* of these: another thread than the running one */
	u64 kicks;          /* number of times that an arrival interrupted a younger request */
	u64 rescues;        /* slices out of turn */
	u64 steals;         /* threads taken from the queue of another CPU */
	u32 asked_at;       /* low half of the time of the kernel's last dispatch call */
	u16 choice_us;      /* time to choose the running thread, at most half a slice: it counts towards the slice */
	u8 is_idle;         /* in a hierarchy of schedulers, where the kernel does not keep it */
	u8 is_out_of_turn;  /* it runs a thread that has waited too long */
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
