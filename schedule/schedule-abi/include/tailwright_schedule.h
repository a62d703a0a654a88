/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The oldest requests first on a service's threads: a gate before the work. docs/reference/gate.md says what it guarantees.
 *
 * A thread enters the gate with the key of its request before it works on it, and leaves it afterwards. Permits belong to
 * the thread that entered: in any other thread the functions that take one do nothing and return -1. Make gates after a
 * fork.
 *
 * Destructors of thread_local objects of C++ can do the same. Those of pthread keys run later, and some of them after what is
 * needed to wake their thread has gone: there tailwright_gate_enter returns null and tailwright_permit_block_end -1, with a
 * message on standard error, and a permit can only leave.
 */
#ifndef TAILWRIGHT_SCHEDULE_H
#define TAILWRIGHT_SCHEDULE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface, which tailwright_schedule_abi() returns. */
#define TAILWRIGHT_SCHEDULE_ABI 1

#define TAILWRIGHT_GATE_UNLIMITED 0
#define TAILWRIGHT_GATE_AUTO UINT32_MAX /* by measurement */

#define TAILWRIGHT_GATE_BY_ARRIVAL 1u     /* in the order in which they come, for comparison */
#define TAILWRIGHT_GATE_ADMISSION_ONLY 2u /* no thread is demoted */

struct tailwright_gate_settings {
	uint32_t limit;       /* requests that run at once */
	uint32_t workers;     /* CPUs of the service; 0: those that this process may use */
	uint32_t flags;       /* TAILWRIGHT_GATE_BY_ARRIVAL, TAILWRIGHT_GATE_ADMISSION_ONLY */
	uint64_t patience_ns; /* how long one request keeps others waiting; 0: for ever */
	uint64_t sentinel_ns; /* how often a thread looks which requests sleep; 0: never */
};

typedef struct tailwright_gate tailwright_gate;
typedef struct tailwright_permit tailwright_permit;

uint32_t tailwright_schedule_abi(void);

/* A gate; null if the flags are unknown. Without settings: a limit by measurement, a patience of one second, no sentinel. */
tailwright_gate *tailwright_gate_new(const struct tailwright_gate_settings *settings);

/* Gives a gate back. Requests that are inside or wait go on as before. */
void tailwright_gate_free(tailwright_gate *gate);

/* Waits until the request with this key, the smaller the earlier, may run, for at most so long (0: without a limit). Null: it
   may not, or there is no gate, or the thread has ended. */
tailwright_permit *tailwright_gate_enter(tailwright_gate *gate, uint64_t key, uint64_t timeout_ns);

/* The request waits for something other than a CPU; and it goes on, for which it may have to wait. 0, or -1. */
int tailwright_permit_block_begin(tailwright_permit *permit);
int tailwright_permit_block_end(tailwright_permit *permit);

/* The request leaves the gate, and the permit is gone. 0, or -1: then the permit is still there. */
int tailwright_permit_leave(tailwright_permit *permit);

/* Which modes the gate is in, and why: the length of the text, which is written only if it fits into `room` bytes. It has no
   zero at the end. */
size_t tailwright_gate_report(const tailwright_gate *gate, char *text, size_t room);

#ifdef __cplusplus
}
#endif
#endif
