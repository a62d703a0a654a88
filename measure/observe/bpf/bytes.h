/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The first bytes of what threads read from connections and write to them, for protocols whose messages are to be told
 * apart. They are copied out of the buffers of the server, because the pages of a packet cannot be read here; so no bytes
 * are seen of what is read and written without such buffers: io_uring, splice, sendfile, servers in the kernel.
 *
 * Nothing of this is in the loaded programs while with_bytes is 0.
 */
#ifndef TAILWRIGHT_BYTES_H
#define TAILWRIGHT_BYTES_H

#include "events.h"

/* The most bytes that one event carries. */
#define PIECE_BYTES_MAX 4096
/* The most bytes of each buffer of a call after the first, where no more is asked for or there is no room. */
#define FURTHER_BYTES_MAX 256
/* The most bytes of the first buffer where half of the ring is used: most heads are shorter. */
#define SHORT_BYTES_MAX 512
/* The most pieces of a call: a buffer is at least one. */
#define PIECES_MAX 32

/* System calls of x86-64. */
#define CALL_READ 0
#define CALL_READV 19
#define CALL_RECVFROM 45
#define CALL_RECVMSG 47

/* Flag of recv: the bytes are thrown away instead of copied. */
#define MSG_TRUNC 0x20

/* Set by the loader before the programs are loaded. */
const volatile u8 with_bytes;
/*
 * The most bytes of a buffer that are copied while half of the ring is free. Where
 * clients send many requests at once, heads are anywhere in a buffer; elsewhere they are at its beginning.
 */
const volatile u32 buffer_bytes_max = PIECE_BYTES_MAX;

struct event_with_bytes {
	struct event event;
	u8 bytes[PIECE_BYTES_MAX];
};

/*
 * What is copied next. In the memory of a map, because the verifier follows numbers on the stack through every turn of a
 * loop, which takes it seconds.
 */
struct copying {
	struct event_with_bytes into;
	u64 buffer; /* the address of the current one, and what is left of it */
	u64 length;
	u64 list; /* the address of the next one's entry in a list, and how many are left */
	u64 count;
	u64 skip; /* bytes of the first one that do not belong to the call */
	u32 is_users; /* whether the list is in the memory of the server */
	u32 begin; /* the sequence number of the next byte */
	u32 left;  /* bytes of the call */
	u32 done;  /* bytes of the buffer that are copied */
	u32 max;   /* the most bytes of the buffer */
	u32 further_max; /* the most of each further one */
};

struct {
	int (*type)[BPF_MAP_TYPE_PERCPU_ARRAY];
	int (*max_entries)[1];
	u32 *key;
	struct copying *value;
} copied SEC(".maps");

/* The place to copy to, or nothing. */
INLINE struct copying *begin_copying(u64 flow, u32 begin, u32 length, u8 flags)
{
	struct copying *copying;
	struct event *event;
	u32 first = 0;
	u64 ring = bpf_ringbuf_query(&events, BPF_RB_RING_SIZE), used = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);
	/* The last quarter is for events: without them nothing is known, without bytes only heads in them are missed. */
	if (used >= ring / 4 * 3)
		return 0;
	copying = bpf_map_lookup_elem(&copied, &first);
	if (!copying)
		return 0;
	event = &copying->into.event;
	event->time = bpf_ktime_get_ns();
	event->flow = flow;
	event->kind = EVENT_BYTES;
	event->flags = flags;
	event->lost = *(volatile u32 *)&lost;
	copying->length = 0;
	copying->count = 0;
	copying->begin = begin;
	copying->left = length;
	copying->done = 0;
	copying->max = PIECE_BYTES_MAX;
	copying->further_max = FURTHER_BYTES_MAX;
	if (used >= ring / 2) {
		copying->max = SHORT_BYTES_MAX;
	} else if (buffer_bytes_max > PIECE_BYTES_MAX) {
		copying->max = buffer_bytes_max;
		copying->further_max = buffer_bytes_max;
	}
	return copying;
}

/* Reports the next bytes of the current buffer; those that cannot be read are left out. */
INLINE void copy_piece(struct copying *copying)
{
	const void *from = (const void *)copying->buffer;
	u32 here = copying->length < copying->left ? copying->length : copying->left;
	u32 allowed = copying->max - copying->done;
	u32 count = here < allowed ? here : allowed;
	u32 passed;
	if (count > PIECE_BYTES_MAX)
		count = PIECE_BYTES_MAX;
	copying->done += count;
	/* What is not copied of a buffer is passed over. */
	passed = copying->done < copying->max ? count : here;
	copying->into.event.begin = copying->begin;
	copying->into.event.end = copying->begin + count;
	copying->begin += passed;
	copying->left -= passed;
	copying->buffer += passed;
	copying->length = passed < here ? copying->length - passed : 0;
	/* Otherwise the compiler concludes what the verifier does not see. */
	asm volatile("" : "+r"(count));
	if (count == 0 || count > PIECE_BYTES_MAX)
		return;
	if (bpf_probe_read_user(copying->into.bytes, count, from))
		return;
	if (bpf_ringbuf_output(&events, &copying->into, sizeof(struct event) + count, BPF_RB_NO_WAKEUP)) {
		__sync_fetch_and_add(&lost, 1);
		add_one(COUNT_LOST);
	}
}

/* An entry of a list of buffers. */
struct buffer_entry {
	u64 address;
	u64 length;
};

/* Goes on to the next buffer of a list. False if there is none. */
INLINE int begin_buffer(struct copying *copying)
{
	const void *from = (const void *)copying->list;
	struct buffer_entry entry;
	if (copying->count == 0)
		return 0;
	if (copying->is_users ? bpf_probe_read_user(&entry, sizeof(entry), from)
			      : bpf_probe_read_kernel(&entry, sizeof(entry), from))
		return 0;
	if (copying->skip >= entry.length && copying->skip)
		return 0;
	copying->buffer = entry.address + copying->skip;
	copying->length = entry.length - copying->skip;
	copying->skip = 0;
	copying->list += sizeof(entry);
	copying->count--;
	return 1;
}

/* A turn of bpf_loop: older verifiers take loops that call helpers only in this form. Returns 1 at the end. */
static __attribute__((noinline)) long copy_next(u32 turn, void *context)
{
	u32 first = 0;
	struct copying *copying = bpf_map_lookup_elem(&copied, &first);
	if (!copying || copying->left == 0)
		return 1;
	if (copying->length == 0) {
		if (!begin_buffer(copying))
			return 1;
		if (turn)
			copying->max = copying->further_max;
		copying->done = 0;
	}
	if (copying->length)
		copy_piece(copying);
	return 0;
}

/* A single buffer. */
INLINE void copy_buffer(struct copying *copying, u64 buffer, u64 length)
{
	copying->buffer = buffer;
	copying->length = length;
	bpf_loop(PIECES_MAX, copy_next, 0, 0);
}

/* A list of buffers, which is in the memory of the kernel or of the server. */
INLINE void copy_buffers(struct copying *copying, const struct iovec *list, u64 count, u64 skip, int is_users)
{
	copying->list = (u64)list;
	copying->count = count;
	copying->skip = skip;
	copying->is_users = is_users;
	bpf_loop(PIECES_MAX, copy_next, 0, 0);
}

/* What comes before and after the list of buffers of a message in the memory of a server. */
struct user_message {
	void *name;
	u64 name_length;
	const struct iovec *list;
	u64 count;
};

/* Reports the first bytes that a read has put into the buffers of the current thread. */
INLINE void report_read_bytes(u64 flow, u32 begin, u32 length, u32 flags)
{
	const struct pt_regs *registers;
	struct user_message message;
	struct copying *copying;
	if (!FIELD_EXISTS(((struct pt_regs *)0)->orig_ax) || flags & MSG_TRUNC)
		return;
	registers = bpf_task_pt_regs(bpf_get_current_task_btf());
	copying = begin_copying(flow, begin, length, 0);
	if (!copying)
		return;
	switch (registers->orig_ax) {
	case CALL_READ:
	case CALL_RECVFROM:
		copy_buffer(copying, registers->si, length);
		return;
	case CALL_READV:
		copy_buffers(copying, (const struct iovec *)registers->si, registers->dx, 0, 1);
		return;
	case CALL_RECVMSG:
		if (!bpf_probe_read_user(&message, sizeof(message), (const void *)registers->si))
			copy_buffers(copying, message.list, message.count, 0, 1);
		return;
	}
}

/* The list of buffers of a message, which had another name before Linux 6.4. */
INLINE const struct iovec *list_of(const struct iov_iter *from)
{
	if (FIELD_EXISTS(((struct iov_iter *)0)->__iov))
		return from->__iov;
	return ((const struct iov_iter___before_6_4 *)from)->iov;
}

/* Reports the first bytes of what the current thread is about to write. */
INLINE void report_written_bytes(u64 flow, const struct msghdr *message, u32 begin, u32 length)
{
	struct copying *copying;
	const struct iov_iter *from = &message->msg_iter;
	u64 buffer;
	int is_one = from->iter_type == ENUM_VALUE(iter_type, ITER_UBUF);
	if (!is_one && from->iter_type != ENUM_VALUE(iter_type, ITER_IOVEC))
		return;
	copying = begin_copying(flow, begin, length, FLAG_ANSWER);
	if (!copying)
		return;
	if (!is_one)
		copy_buffers(copying, list_of(from), from->nr_segs, from->iov_offset, 0);
	else if (!bpf_probe_read_kernel(&buffer, sizeof(buffer), &from->ubuf))
		copy_buffer(copying, buffer + from->iov_offset, length);
}

#endif
