/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The start of a request, propagated from the edge to every service on its way in the W3C baggage header.
 *
 * Texts are a pointer and a length and need no terminating zero; a null pointer is an empty text. Several baggage headers
 * are passed as one text, joined by commas. Functions that make a text return its whole length and write it only if it
 * fits into `room` bytes; otherwise call again with more room. The text may not overlap with the input. All functions
 * may be called by any thread at any time, and after a fork; none allocates memory for the caller to free.
 */
#ifndef TAILWRIGHT_GAT_H
#define TAILWRIGHT_GAT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface, which tailwright_gat_abi() returns. */
#define TAILWRIGHT_GAT_ABI 1

/* Nanoseconds of CLOCK_REALTIME since 1970. */
struct tailwright_tag {
	uint64_t start_ns;    /* when the request entered */
	uint64_t deadline_ns; /* when its answer is due; 0: no deadline */
};

#define TAILWRIGHT_UNTAGGED 0
#define TAILWRIGHT_TAGGED 1
#define TAILWRIGHT_MALFORMED (-1) /* something with our name is no tag */

uint32_t tailwright_gat_abi(void);

/* Finds the tag in a baggage header. `tag` is written only when there is one. */
int tailwright_gat_read(const char *baggage, size_t length, struct tailwright_tag *tag);

/* The header with this tag in place of others, for calls to services of the same system. Null: without one. */
size_t tailwright_gat_write(const char *baggage, size_t length, const struct tailwright_tag *tag, char *text, size_t room);

/* The header without tags: what replies and calls to others carry. Leave the header out where the length is 0. */
size_t tailwright_gat_strip(const char *baggage, size_t length, char *text, size_t room);

/* At the entry point: the tag of a request that enters now, regardless of its claims. Starts of a process increase strictly. */
void tailwright_gat_enter(struct tailwright_tag *tag);

/* At an inner service: the tag by which a request is served. Without an acceptable one it starts now. */
void tailwright_gat_receive(const char *baggage, size_t length, struct tailwright_tag *tag);

/* Sets the tag of the request that this thread works for. Null: none. While `tailwright schedule kernel` runs, the kernel
   schedules the thread by its start from then on, or by its deadline (tailwright_gat_order_by_deadline). */
void tailwright_gat_set_current(const struct tailwright_tag *tag);

/* Makes the kernel order the threads of this process by the deadlines of tags set from now on; a tag without one is due
   `default_slo_ns` after its start. 0: by starts, as before the first call. All programs of a machine must use the same
   order. Returns 0, or -1 if `default_slo_ns` is more than a day: then nothing changes. */
int tailwright_gat_order_by_deadline(uint64_t default_slo_ns);

/* 1 if the kernel schedules this thread by its tags, otherwise 0. */
int tailwright_gat_is_scheduled(void);

/* TAILWRIGHT_TAGGED, and the tag of the request that this thread works for, or TAILWRIGHT_UNTAGGED. */
int tailwright_gat_current(struct tailwright_tag *tag);

#ifdef __cplusplus
}
#endif
#endif
