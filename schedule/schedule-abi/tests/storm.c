/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Threads of a service that use a gate in every way at once: short waits, endless waits, blocks, nested permits,
 * threads that end with their permit, and a process that ends while threads wait. Afterwards a gate has as many
 * permits as before, and no thread is demoted. The argument is the time for which each of two gates is used, seconds.
 */
#define _GNU_SOURCE
#include "tailwright_schedule.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define CHECK(holds) \
	do { \
		if (!(holds)) { \
			fprintf(stderr, "line %d: %s\n", __LINE__, #holds); \
			exit(1); \
		} \
	} while (0)

#define THREADS 12
#define LIMIT 3
#define MS 1000000ull

static tailwright_gate *gate;
/* True if at most the limit may run at any time: no preemption, no patience. */
static int is_strict;
static uint64_t end;
static atomic_int running;
static atomic_ulong entered, timed_out, blocked, nested, ended_inside;

static uint64_t now(void)
{
	struct timespec time;

	CHECK(clock_gettime(CLOCK_MONOTONIC, &time) == 0);
	return (uint64_t)time.tv_sec * 1000 * MS + (uint64_t)time.tv_nsec;
}

static uint64_t chance(uint64_t *state, uint64_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state % below;
}

static void work(uint64_t ns)
{
	for (uint64_t until = now() + ns; now() < until;)
		;
}

static void runs(void)
{
	int count = ++running;

	CHECK(!is_strict || count <= LIMIT);
}

static void rests(void)
{
	running--;
}

static tailwright_permit *enter(uint64_t key, uint64_t timeout_ns)
{
	tailwright_permit *permit = tailwright_gate_enter(gate, key, timeout_ns);

	CHECK(permit || timeout_ns);
	if (permit) {
		runs();
		entered++;
	} else {
		timed_out++;
	}
	return permit;
}

static void leave(tailwright_permit *permit)
{
	rests();
	CHECK(tailwright_permit_leave(permit) == 0);
	CHECK(sched_getscheduler(0) == SCHED_OTHER);
}

static void *end_inside(void *key)
{
	if (enter((uint64_t)(uintptr_t)key, 0)) {
		work(20000);
		rests();
		ended_inside++;
	}
	return NULL;
}

static void one_request(uint64_t *state)
{
	uint64_t key = chance(state, 1000) + 1;
	tailwright_permit *permit, *inner;
	pthread_t thread;

	switch (chance(state, 8)) {
	case 0:
		CHECK(pthread_create(&thread, NULL, end_inside, (void *)(uintptr_t)key) == 0);
		CHECK(pthread_join(thread, NULL) == 0);
		return;
	case 1:
		permit = enter(key, 0);
		rests();
		CHECK(tailwright_permit_block_begin(permit) == 0);
		usleep((useconds_t)chance(state, 300));
		CHECK(tailwright_permit_block_end(permit) == 0);
		runs();
		blocked++;
		leave(permit);
		return;
	case 2:
		permit = enter(key, 0);
		CHECK((inner = tailwright_gate_enter(gate, key + 1, 1)));
		work(chance(state, 20000));
		nested++;
		if (chance(state, 2)) {
			CHECK(tailwright_permit_leave(permit) == 0);
			permit = inner;
		} else {
			CHECK(tailwright_permit_leave(inner) == 0);
		}
		leave(permit);
		return;
	case 3:
	case 4:
	case 5:
		permit = enter(key, 1 + chance(state, MS));
		break;
	default:
		permit = enter(key, 0);
	}
	if (permit) {
		work(chance(state, 100000));
		leave(permit);
	}
}

static void *worker(void *number)
{
	uint64_t state = 0x9E3779B97F4A7C15ull * ((uintptr_t)number + 1);

	while (now() < end)
		one_request(&state);
	return NULL;
}

static pthread_barrier_t all_inside, may_leave;

static void *holder(void *unused)
{
	tailwright_permit *permit;

	(void)unused;
	CHECK((permit = tailwright_gate_enter(gate, 5, 30000 * MS)));
	pthread_barrier_wait(&all_inside);
	pthread_barrier_wait(&may_leave);
	CHECK(tailwright_permit_leave(permit) == 0);
	return NULL;
}

/* As many requests as the limit allows get in, and one more does not. */
static void has_all_permits(void)
{
	pthread_t threads[LIMIT];

	CHECK(pthread_barrier_init(&all_inside, NULL, LIMIT + 1) == 0);
	CHECK(pthread_barrier_init(&may_leave, NULL, LIMIT + 1) == 0);
	for (int next = 0; next < LIMIT; next++)
		CHECK(pthread_create(&threads[next], NULL, holder, NULL) == 0);
	pthread_barrier_wait(&all_inside);
	CHECK(!is_strict || !tailwright_gate_enter(gate, 9, MS));
	pthread_barrier_wait(&may_leave);
	for (int next = 0; next < LIMIT; next++)
		CHECK(pthread_join(threads[next], NULL) == 0);
}

static void storm(uint32_t flags, uint64_t patience_ns, uint64_t length_ns)
{
	struct tailwright_gate_settings settings = {
		.limit = LIMIT, .workers = 2, .flags = flags, .patience_ns = patience_ns
	};
	pthread_t threads[THREADS];

	is_strict = flags && !patience_ns;
	CHECK((gate = tailwright_gate_new(&settings)));
	end = now() + length_ns;
	for (uintptr_t next = 0; next < THREADS; next++)
		CHECK(pthread_create(&threads[next], NULL, worker, (void *)next) == 0);
	for (int next = 0; next < THREADS; next++)
		CHECK(pthread_join(threads[next], NULL) == 0);
	CHECK(running == 0);
	CHECK(entered && timed_out && blocked && nested && ended_inside);
	printf("%lu entered, %lu waited too long, %lu blocked, %lu within another one, %lu ended inside\n",
	       entered, timed_out, blocked, nested, ended_inside);
	entered = timed_out = blocked = nested = ended_inside = 0;
	has_all_permits();
}

static void *wait_for_ever(void *unused)
{
	(void)unused;
	tailwright_gate_enter(gate, 7, 0);
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t length_ns = (argc > 1 ? strtoull(argv[1], NULL, 10) : 2) * 1000 * MS;
	pthread_t thread;

	storm(TAILWRIGHT_GATE_ADMISSION_ONLY, 0, length_ns);
	tailwright_gate_free(gate);
	storm(0, 10 * MS, length_ns);
	tailwright_gate_free(gate);
	puts("nothing leaked");
	fflush(stdout);

	/* The process ends while one thread is in the gate and others wait. */
	CHECK((gate = tailwright_gate_new(&(struct tailwright_gate_settings){
		.limit = 1, .workers = 1, .flags = TAILWRIGHT_GATE_ADMISSION_ONLY })));
	CHECK(tailwright_gate_enter(gate, 1, 0));
	for (int next = 0; next < THREADS; next++)
		CHECK(pthread_create(&thread, NULL, wait_for_ever, NULL) == 0);
	usleep(20000);
	return 0;
}
