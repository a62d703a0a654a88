/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The oldest requests first on a service's threads: a gate before the work. docs/reference/gate.md says what it guarantees.
 *
 * A thread enters the gate with the key of its request before it works on it, and leaves it afterwards. Permits belong to
 * the thread that entered: in any other thread the functions that take one do nothing and return -1. Create gates after a
 * fork.
 *
 * Destructors of C++ thread_local objects may do the same. Those of pthread keys run later, some of them after the data
 * needed to wake their thread are gone: there tailwright_gate_enter returns null and tailwright_permit_block_end -1, with
 * a message on standard error, and a permit can only leave.
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

#define TAILWRIGHT_GATE_BY_ARRIVAL 1u     /* in the order of arrival, for comparison */
#define TAILWRIGHT_GATE_ADMISSION_ONLY 2u /* no thread is demoted */

struct tailwright_gate_settings {
	uint32_t limit;       /* requests that run at once */
	uint32_t workers;     /* CPUs of the service; 0: those that this process may use */
	uint32_t flags;       /* TAILWRIGHT_GATE_BY_ARRIVAL, TAILWRIGHT_GATE_ADMISSION_ONLY */
	uint64_t patience_ns; /* maximum time for which a request keeps others waiting; 0: unlimited */
	uint64_t sentinel_ns; /* sampling interval of the thread that detects sleeping requests; 0: never */
};

typedef struct tailwright_gate tailwright_gate;
typedef struct tailwright_permit tailwright_permit;

uint32_t tailwright_schedule_abi(void);

/* A gate; null if the flags are unknown. Without settings: a limit by measurement, a patience of one second, no sentinel. */
tailwright_gate *tailwright_gate_new(const struct tailwright_gate_settings *settings);

/* Releases a gate. Requests that are inside or wait continue as before. */
void tailwright_gate_free(tailwright_gate *gate);

/* Waits until the request with this key (smaller is earlier) may run, for at most `timeout_ns` (0: without a limit). Null:
   it may not, there is no gate, or the thread has ended. */
tailwright_permit *tailwright_gate_enter(tailwright_gate *gate, uint64_t key, uint64_t timeout_ns);

/* The request begins to wait for something other than a CPU; ends that wait, and may have to wait for its turn. 0, or -1. */
int tailwright_permit_block_begin(tailwright_permit *permit);
int tailwright_permit_block_end(tailwright_permit *permit);

/* The request leaves the gate, and the permit is freed. 0, or -1: then the permit is still valid. */
int tailwright_permit_leave(tailwright_permit *permit);

/* Reports the modes of the gate, with reasons. Returns the length of the text, which is written only if it fits into `room`
   bytes, without a terminating zero. */
size_t tailwright_gate_report(const tailwright_gate *gate, char *text, size_t room);

#ifdef __cplusplus
}
#endif
#endif
