// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * Reports every request of block devices: when it comes, when the device gets it and when it is done, and for whom. Each
 * of these is an event of its own, so that it is known at every instant which requests are at a device.
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

/* What an event says; see src/block/event.rs, which decodes it. */
enum block_phase { PHASE_BEGIN = 1, PHASE_ISSUE, PHASE_DONE, PHASE_MERGED, PHASE_RETURNED };

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
	u64 number; /* of the request: no other one has it */
	u64 time;   /* of the event */
	u32 phase;
	u32 error;  /* 0: done */
};

u64 numbers;

struct {
	int (*type)[BPF_MAP_TYPE_RINGBUF];
	int (*max_entries)[1 << 22];
} block_events SEC(".maps");

/* Requests that are not done, by their address. */
struct {
	int (*type)[BPF_MAP_TYPE_HASH];
	int (*max_entries)[OPEN_REQUESTS];
	u64 *key;
	struct block_event *value;
} open_requests SEC(".maps");

/* Requests of bios for which a request was just made, by the address of the bio; before Linux 6.5. */
struct {
	int (*type)[BPF_MAP_TYPE_LRU_HASH];
	int (*max_entries)[OPEN_REQUESTS];
	u64 *key;
	struct block_event *value;
} open_bios SEC(".maps");

/*
 * Requests that were not reported: too many were open, or nobody took the events in time. And events of any phase that
 * found no room.
 */
enum block_count { COUNT_REQUESTS, COUNT_EVENTS, BLOCK_COUNTS };

struct {
	int (*type)[BPF_MAP_TYPE_ARRAY];
	int (*max_entries)[BLOCK_COUNTS];
	u32 *key;
	u64 *value;
} block_counts SEC(".maps");

INLINE void add_block_count(u32 key)
{
	u64 *count = bpf_map_lookup_elem(&block_counts, &key);
	if (count)
		__sync_fetch_and_add(count, 1);
}

/* False if there is no room. */
INLINE int report(struct block_event *event, u32 phase, u64 now)
{
	struct block_event *reported = bpf_ringbuf_reserve(&block_events, sizeof(*reported), 0);
	if (!reported) {
		add_block_count(COUNT_EVENTS);
		return 0;
	}
	*reported = *event;
	reported->phase = phase;
	reported->time = now;
	bpf_ringbuf_submit(reported, BPF_RB_NO_WAKEUP);
	return 1;
}

INLINE u32 number_of_disk(const struct gendisk *disk)
{
	return disk ? (u32)disk->major << 20 | (u32)disk->first_minor : 0;
}

/* Notes who runs, and that a request begins on a device. False if the device is not observed. */
INLINE int begin_for_current(struct block_event *event, const struct gendisk *disk, u64 now)
{
	event->device = number_of_disk(disk);
	if (device_only != ~0u && event->device != device_only)
		return 0;
	event->begin = now;
	event->cgroup = bpf_get_current_cgroup_id();
	event->process = bpf_get_current_pid_tgid() >> 32;
	bpf_get_current_comm(event->name, sizeof(event->name));
	event->number = __sync_fetch_and_add(&numbers, 1);
	return 1;
}

/* Begins to follow a request that has begun. */
INLINE void follow(const struct request *request, struct block_event *event, u32 phase, u64 now)
{
	u64 key = (u64)request;
	event->operation = request->cmd_flags & OPERATION_MASK;
	event->bytes = request->__data_len;
	if (bpf_map_update_elem(&open_requests, &key, event, 0))
		add_block_count(COUNT_REQUESTS);
	else
		report(event, phase, now);
}

/* A process hands a request to the block layer. */
SEC("tp_btf/block_io_start")
int tw_block_begin(u64 *context)
{
	const struct request *request = (const struct request *)context[0];
	struct block_event event = {};
	u64 now = bpf_ktime_get_ns();
	if (begin_for_current(&event, request->q->disk, now))
		follow(request, &event, PHASE_BEGIN, now);
	return 0;
}

/* Before Linux 6.5: a bio of the current process has got a request. */
SEC("tp_btf/block_getrq")
int tw_block_bio(u64 *context)
{
	const struct bio *bio = (const struct bio *)context[0];
	struct block_event event = {};
	u64 key = (u64)bio, now = bpf_ktime_get_ns();
	if (!begin_for_current(&event, bio->bi_bdev->bd_disk, now))
		return 0;
	event.operation = bio->bi_opf & OPERATION_MASK;
	event.bytes = bio->bi_iter.bi_size;
	bpf_map_update_elem(&open_bios, &key, &event, 0);
	report(&event, PHASE_BEGIN, now);
	return 0;
}

/* A request that is not followed yet: it was made for a bio, or it is not accounted and begins now. */
INLINE void follow_at_issue(const struct request *request, u64 now)
{
	struct block_event event = {};
	u64 bio = (u64)request->bio;
	struct block_event *begun = bio ? bpf_map_lookup_elem(&open_bios, &bio) : 0;
	if (begun) {
		event = *begun;
		bpf_map_delete_elem(&open_bios, &bio);
	} else if (!begin_for_current(&event, request->q->disk, now)) {
		return;
	}
	event.issue = now;
	follow(request, &event, PHASE_ISSUE, now);
}

/* A request is handed to the device; again, when the device did not take it. */
SEC("tp_btf/block_rq_issue")
int tw_block_issue(u64 *context)
{
	const struct request *request = (const struct request *)context[0];
	u64 key = (u64)request, now = bpf_ktime_get_ns();
	struct block_event *event = bpf_map_lookup_elem(&open_requests, &key);
	if (!event) {
		follow_at_issue(request, now);
		return 0;
	}
	event->issue = now;
	/* Others may have been merged into it. */
	event->bytes = request->__data_len;
	report(event, PHASE_ISSUE, now);
	return 0;
}

/* The device did not take a request, which is in a queue again. */
SEC("tp_btf/block_rq_requeue")
int tw_block_return(u64 *context)
{
	u64 key = context[0];
	struct block_event *event = bpf_map_lookup_elem(&open_requests, &key);
	if (event)
		report(event, PHASE_RETURNED, bpf_ktime_get_ns());
	return 0;
}

/* The device has done a request, or a part of it. */
SEC("tp_btf/block_rq_complete")
int tw_block_complete(u64 *context)
{
	const struct request *request = (const struct request *)context[0];
	u64 key = (u64)request;
	struct block_event *event;
	if ((u32)context[2] < request->__data_len)
		return 0;
	event = bpf_map_lookup_elem(&open_requests, &key);
	if (!event)
		return 0;
	event->end = bpf_ktime_get_ns();
	event->error = (u8)context[1];
	if (!event->issue)
		report(event, PHASE_MERGED, event->end);
	else if (!report(event, PHASE_DONE, event->end))
		add_block_count(COUNT_REQUESTS);
	bpf_map_delete_elem(&open_requests, &key);
	return 0;
}

/* A request was merged into another one, which has its bytes now. */
SEC("tp_btf/block_rq_merge")
int tw_block_merge(u64 *context)
{
	const struct request *request = (const struct request *)context[0];
	u64 key = (u64)request, bio = (u64)request->bio, now = bpf_ktime_get_ns();
	struct block_event *event = bpf_map_lookup_elem(&open_requests, &key);
	if (event) {
		report(event, PHASE_MERGED, now);
		bpf_map_delete_elem(&open_requests, &key);
		return 0;
	}
	event = bpf_map_lookup_elem(&open_bios, &bio);
	if (event) {
		report(event, PHASE_MERGED, now);
		bpf_map_delete_elem(&open_bios, &bio);
	}
	return 0;
}

char licence[] SEC("license") = "Dual MIT/GPL";
