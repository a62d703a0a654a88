/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Events for user space, and the ring in which they wait to be taken.
 */
#ifndef TAILWRIGHT_EVENTS_H
#define TAILWRIGHT_EVENTS_H

#include "kernel.h"

/* What an event says; see src/event.rs, which decodes it. */
enum event_kind {
	EVENT_ARRIVAL = 1,
	EVENT_READY = 2,
	EVENT_RECEIVE = 3,
	EVENT_SEND = 4,
	EVENT_TRANSMIT = 5,
	EVENT_CLOSE = 6,
	EVENT_LEAVE = 7,
	EVENT_OCCUPANT = 8,
	EVENT_BYTES = 9,
	EVENT_OPEN = 10,
	EVENT_ACCEPT = 11,
	EVENT_MOVE = 12,
	EVENT_THROTTLED = 13,
};

enum event_flags {
	FLAG_PUSH = 1,
	FLAG_UDP = 2,
	FLAG_IPV6 = 4,
	FLAG_ANSWER = 8,
	FLAG_IDLE = 16,
	FLAG_UNSEEN = 32,
	FLAG_MPTCP = 32, /* of EVENT_READY */
	FLAG_KERNEL_NFS = 64,
	FLAG_WAITS_FOR_IO = 128,
};

struct event {
	u64 time;
	u64 flow;
	u64 earlier;
	u64 socket;
	u32 begin;
	u32 end;
	u32 thread;
	u32 process;
	u16 local_port;
	u16 peer_port;
	u8 kind;
	u8 flags;
	u16 lost;
	u32 peer[4];
	u64 freed; /* when the last write of the thread before this had returned, or 0 */
};

/* The number of events that found no room, of which each event that does find room carries the low bits. */
u32 lost;

struct {
	int (*type)[BPF_MAP_TYPE_RINGBUF];
	int (*max_entries)[1 << 23];
} events SEC(".maps");

enum count { COUNT_LOST, COUNT_RETRANSMITS, COUNTS };

struct {
	int (*type)[BPF_MAP_TYPE_ARRAY];
	int (*max_entries)[COUNTS];
	u32 *key;
	u64 *value;
} counts SEC(".maps");

INLINE void add_one(u32 which)
{
	u64 *count = bpf_map_lookup_elem(&counts, &which);
	if (count)
		__sync_fetch_and_add(count, 1);
}

/* A new event with everything but its kind's own fields, or nothing when there is no room. */
INLINE struct event *begin_event(u8 kind, u64 time, u64 flow)
{
	struct event *event = bpf_ringbuf_reserve(&events, sizeof(struct event), 0);
	if (!event) {
		__sync_fetch_and_add(&lost, 1);
		add_one(COUNT_LOST);
		return 0;
	}
	event->time = time;
	event->flow = flow;
	event->earlier = 0;
	event->socket = 0;
	event->begin = 0;
	event->end = 0;
	event->thread = 0;
	event->process = 0;
	event->local_port = 0;
	event->peer_port = 0;
	event->kind = kind;
	event->flags = 0;
	event->lost = *(volatile u32 *)&lost;
	event->peer[0] = 0;
	event->peer[1] = 0;
	event->peer[2] = 0;
	event->peer[3] = 0;
	event->freed = 0;
	return event;
}

INLINE void end_event(struct event *event) { bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP); }

INLINE void set_thread(struct event *event)
{
	u64 ids = bpf_get_current_pid_tgid();
	event->thread = (u32)ids;
	event->process = ids >> 32;
}

#endif
