// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * Reports every request that block devices have completed: when it came, when the device got it, when it was done, and
 * for whom.
 *
 * Like the rest of the repository, this file is licensed under MIT or Apache-2.0, as you choose. The licence that is
 * declared to the kernel, "Dual MIT/GPL", lets the kernel run it.
 *
 * All programs are attached to tracepoints with type information (tp_btf).
 */
#include "kernel.h"

#define OPEN_REQUESTS 16384
#define OPERATION_MASK 0xff

/* Set by the loader: the number of the only device, or ~0 for all. */
const volatile u32 device_only = ~0;

/* A request that is done; see src/block/event.rs, which decodes it. */
struct block_event {
	u64 begin;  /* when it came to the block layer */
	u64 issue;  /* when the device got it */
	u64 end;    /* when the device was done */
	u64 cgroup; /* of the process that it came from */
	u32 device;
	u32 operation;
	u32 bytes;
	u32 process;
	char name[16];
	u64 error; /* 0: done */
};

struct {
	int (*type)[BPF_MAP_TYPE_RINGBUF];
	int (*max_entries)[1 << 20];
} block_events SEC(".maps");

/* Requests that are not done, by their address. */
struct {
	int (*type)[BPF_MAP_TYPE_HASH];
	int (*max_entries)[OPEN_REQUESTS];
	u64 *key;
	struct block_event *value;
} open_requests SEC(".maps");

/* Requests that were not reported: too many were open, or nobody took the events in time. */
struct {
	int (*type)[BPF_MAP_TYPE_ARRAY];
	int (*max_entries)[1];
	u32 *key;
	u64 *value;
} block_counts SEC(".maps");

INLINE void count_lost(void)
{
	u32 key = 0;
	u64 *count = bpf_map_lookup_elem(&block_counts, &key);
	if (count)
		__sync_fetch_and_add(count, 1);
}

INLINE u32 device_of(const struct request *request)
{
	const struct gendisk *disk = request->q->disk;
	return disk ? (u32)disk->major << 20 | (u32)disk->first_minor : 0;
}

/* Begins to follow a request, for whoever runs. */
INLINE void follow(const struct request *request, u64 now, u64 issue)
{
	struct block_event event = {};
	u64 key = (u64)request;
	event.device = device_of(request);
	if (device_only != ~0u && event.device != device_only)
		return;
	event.begin = now;
	event.issue = issue;
	event.cgroup = bpf_get_current_cgroup_id();
	event.operation = request->cmd_flags & OPERATION_MASK;
	event.bytes = request->__data_len;
	event.process = bpf_get_current_pid_tgid() >> 32;
	bpf_get_current_comm(event.name, sizeof(event.name));
	if (bpf_map_update_elem(&open_requests, &key, &event, 0))
		count_lost();
}

/* A process hands a request to the block layer. */
SEC("tp_btf/block_io_start")
int tw_block_begin(u64 *context)
{
	follow((const struct request *)context[0], bpf_ktime_get_ns(), 0);
	return 0;
}

/* A request is handed to the device; again, when the device did not take it. */
SEC("tp_btf/block_rq_issue")
int tw_block_issue(u64 *context)
{
	const struct request *request = (const struct request *)context[0];
	u64 key = (u64)request, now = bpf_ktime_get_ns();
	struct block_event *event = bpf_map_lookup_elem(&open_requests, &key);
	if (!event) {
		/* One that is not accounted has begun now. */
		follow(request, now, now);
		return 0;
	}
	event->issue = now;
	/* Others may have been merged into it. */
	event->bytes = request->__data_len;
	return 0;
}

/* The device has done a request, or a part of it. */
SEC("tp_btf/block_rq_complete")
int tw_block_complete(u64 *context)
{
	const struct request *request = (const struct request *)context[0];
	u64 key = (u64)request;
	struct block_event *event, *done;
	if ((u32)context[2] < request->__data_len)
		return 0;
	event = bpf_map_lookup_elem(&open_requests, &key);
	if (!event)
		return 0;
	done = event->issue ? bpf_ringbuf_reserve(&block_events, sizeof(*done), 0) : 0;
	if (done) {
		*done = *event;
		done->end = bpf_ktime_get_ns();
		done->error = (u8)context[1];
		bpf_ringbuf_submit(done, BPF_RB_NO_WAKEUP);
	} else if (event->issue) {
		count_lost();
	}
	bpf_map_delete_elem(&open_requests, &key);
	return 0;
}

/* A request was merged into another one, which has its bytes now. */
SEC("tp_btf/block_rq_merge")
int tw_block_merge(u64 *context)
{
	u64 key = context[0];
	bpf_map_delete_elem(&open_requests, &key);
	return 0;
}

char licence[] SEC("license") = "Dual MIT/GPL";
