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

/* The most bytes of the first buffer of a call, and of each further one. */
#define FIRST_BYTES_MAX 4096
#define FURTHER_BYTES_MAX 256
/* The most buffers of a call. */
#define BUFFERS_MAX 32

/* System calls of x86-64. */
#define CALL_READ 0
#define CALL_READV 19
#define CALL_RECVFROM 45
#define CALL_RECVMSG 47

/* Flags of recv: the bytes stay in the socket, and the bytes are thrown away. */
#define MSG_PEEK 0x02
#define MSG_TRUNC 0x20

/* Set by the loader before the programs are loaded. */
const volatile u8 with_bytes;

struct event_with_bytes {
	struct event event;
	u8 bytes[FIRST_BYTES_MAX];
};

struct {
	int (*type)[BPF_MAP_TYPE_PERCPU_ARRAY];
	int (*max_entries)[1];
	u32 *key;
	struct event_with_bytes *value;
} copied SEC(".maps");

/* What is copied next. */
struct copying {
	struct event_with_bytes *into;
	u32 begin; /* the sequence number of the next byte */
	u32 left;  /* bytes of the call */
	u32 max;
};

/* False if there is no place to copy to. */
INLINE int begin_copying(struct copying *copying, u64 flow, u32 begin, u32 length, u8 flags)
{
	struct event *event;
	u32 first = 0;
	copying->into = bpf_map_lookup_elem(&copied, &first);
	if (!copying->into)
		return 0;
	event = &copying->into->event;
	event->time = bpf_ktime_get_ns();
	event->flow = flow;
	event->kind = EVENT_BYTES;
	event->flags = flags;
	event->lost = *(volatile u32 *)&lost;
	copying->begin = begin;
	copying->left = length;
	copying->max = FIRST_BYTES_MAX;
	return 1;
}

/* Reports the first bytes of a buffer; those that cannot be read are left out. */
INLINE void copy_buffer(struct copying *copying, const void *buffer, u64 length)
{
	u32 here = length < copying->left ? length : copying->left;
	u32 count = here < copying->max ? here : copying->max;
	/* Otherwise the compiler concludes what the verifier does not see. */
	asm volatile("" : "+r"(count));
	if (count == 0 || count > FIRST_BYTES_MAX)
		return;
	copying->into->event.begin = copying->begin;
	copying->into->event.end = copying->begin + count;
	copying->begin += here;
	copying->left -= here;
	copying->max = FURTHER_BYTES_MAX;
	if (bpf_probe_read_user(copying->into->bytes, count, buffer))
		return;
	if (bpf_ringbuf_output(&events, copying->into, sizeof(struct event) + count, BPF_RB_NO_WAKEUP)) {
		__sync_fetch_and_add(&lost, 1);
		add_one(COUNT_LOST);
	}
}

/* A list of buffers, which is in the memory of the kernel or of the server. */
INLINE void copy_buffers(struct copying *copying, const struct iovec *list, u64 count, u64 skip, int is_users)
{
	for (u32 i = 0; i < BUFFERS_MAX; i++) {
		struct iovec buffer;
		if (i >= count || copying->left == 0)
			return;
		if (is_users ? bpf_probe_read_user(&buffer, sizeof(buffer), list + i)
			     : bpf_probe_read_kernel(&buffer, sizeof(buffer), list + i))
			return;
		if (skip < buffer.iov_len)
			copy_buffer(copying, buffer.iov_base + skip, buffer.iov_len - skip);
		skip = 0;
	}
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
	struct copying copying;
	if (!FIELD_EXISTS(((struct pt_regs *)0)->orig_ax) || flags & MSG_TRUNC)
		return;
	registers = bpf_task_pt_regs(bpf_get_current_task_btf());
	if (!begin_copying(&copying, flow, begin, length, 0))
		return;
	switch (registers->orig_ax) {
	case CALL_READ:
	case CALL_RECVFROM:
		copy_buffer(&copying, (const void *)registers->si, length);
		return;
	case CALL_READV:
		copy_buffers(&copying, (const struct iovec *)registers->si, registers->dx, 0, 1);
		return;
	case CALL_RECVMSG:
		if (!bpf_probe_read_user(&message, sizeof(message), (const void *)registers->si))
			copy_buffers(&copying, message.list, message.count, 0, 1);
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
	struct copying copying;
	const struct iov_iter *from = &message->msg_iter;
	u64 buffer;
	int is_one = from->iter_type == ENUM_VALUE(iter_type, ITER_UBUF);
	if ((!is_one && from->iter_type != ENUM_VALUE(iter_type, ITER_IOVEC)) ||
	    !begin_copying(&copying, flow, begin, length, FLAG_ANSWER))
		return;
	if (!is_one)
		copy_buffers(&copying, list_of(from), from->nr_segs, from->iov_offset, 0);
	/* Read as a number: verifiers of older kernels allow no arithmetic with the pointer. */
	else if (!bpf_probe_read_kernel(&buffer, sizeof(buffer), &from->ubuf))
		copy_buffer(&copying, (const void *)(buffer + from->iov_offset), length);
}

#endif
