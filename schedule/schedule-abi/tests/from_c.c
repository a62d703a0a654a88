/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A service in C that uses the gate; each check that fails ends it. */
#define _GNU_SOURCE
#include "tailwright_schedule.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(holds) \
	do { \
		if (!(holds)) { \
			fprintf(stderr, "line %d: %s\n", __LINE__, #holds); \
			exit(1); \
		} \
	} while (0)

#define REQUESTS 4

static tailwright_gate *gate;
/* The keys in the order of service. With a limit of 1 one thread at a time writes here. */
static int order[REQUESTS], done;
/* The thread that is about to enter the gate. */
static atomic_int entering;

static void *other_thread(void *permit)
{
	/* A permit stays in its thread. */
	CHECK(tailwright_permit_block_begin(permit) == -1);
	CHECK(tailwright_permit_block_end(permit) == -1);
	CHECK(tailwright_permit_leave(permit) == -1);
	/* The gate is full. */
	CHECK(!tailwright_gate_enter(gate, 1, 1000000));
	return NULL;
}

static void *request(void *key)
{
	tailwright_permit *permit;

	entering = gettid();
	CHECK((permit = tailwright_gate_enter(gate, (uint64_t)(uintptr_t)key, 0)));
	order[done++] = (int)(uintptr_t)key;
	CHECK(tailwright_permit_leave(permit) == 0);
	return NULL;
}

static void joined(pthread_t thread)
{
	CHECK(pthread_join(thread, NULL) == 0);
}

/* Looks until a thread sleeps. Nothing else has it sleep between the note that it enters and the wait in the gate, because no
   other thread uses the gate meanwhile. */
static void wait_until_asleep(int thread)
{
	char path[64], state = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
	while (state != 'S') {
		sched_yield();
		CHECK((status = fopen(path, "r")));
		CHECK(fscanf(status, "%*d (%*[^)]) %c", &state) == 1);
		fclose(status);
	}
}

/* Checks that requests that all wait, in this order of arrival, are served in that order of keys. */
static void served_in(const int *expected, uint32_t flags)
{
	static const int keys[REQUESTS] = { 30, 10, 40, 20 };
	struct tailwright_gate_settings settings = {
		.limit = 1, .workers = 1, .flags = TAILWRIGHT_GATE_ADMISSION_ONLY | flags
	};
	pthread_t threads[REQUESTS];
	tailwright_permit *permit;

	CHECK((gate = tailwright_gate_new(&settings)));
	CHECK((permit = tailwright_gate_enter(gate, 50, 0)));
	done = 0;
	for (int next = 0; next < REQUESTS; next++) {
		entering = 0;
		CHECK(pthread_create(&threads[next], NULL, request, (void *)(uintptr_t)keys[next]) == 0);
		while (!entering)
			sched_yield();
		wait_until_asleep(entering);
	}
	CHECK(done == 0);
	CHECK(tailwright_permit_leave(permit) == 0);
	for (int next = 0; next < REQUESTS; next++)
		joined(threads[next]);
	CHECK(done == REQUESTS && memcmp(order, expected, sizeof(order)) == 0);
	tailwright_gate_free(gate);
}

/* glibc's function that registers destructors of C++ thread_local objects. */
extern int __cxa_thread_atexit_impl(void (*destructor)(void *), void *object, void *library);
extern void *__dso_handle;

static pthread_key_t ending;
static int objects, keys;

/* Destructors of such objects can enter. */
static void end_object(void *unused)
{
	tailwright_permit *permit = tailwright_gate_enter(gate, 5, 0);

	(void)unused;
	CHECK(permit && tailwright_permit_block_begin(permit) == 0 && tailwright_permit_block_end(permit) == 0);
	CHECK(tailwright_permit_leave(permit) == 0);
	objects++;
}

/* Destructors of keys can enter early, and are refused later. A permit from an early entry can leave later. */
static void end_key(void *early)
{
	static int is_refused;
	tailwright_permit *permit = tailwright_gate_enter(gate, 5, 0);

	if (keys++ == 0)
		is_refused = 0;
	CHECK(!permit || !is_refused);
	is_refused = !permit;
	if (permit && early == &keys)
		early = permit;
	else
		CHECK(!permit || tailwright_permit_leave(permit) == 0);
	if (keys < 4) {
		CHECK(pthread_setspecific(ending, early) == 0);
		return;
	}
	CHECK(is_refused);
	CHECK(early == &keys || tailwright_permit_leave(early) == 0);
}

static void *use_and_end(void *used)
{
	CHECK(__cxa_thread_atexit_impl(end_object, NULL, &__dso_handle) == 0);
	if (used)
		CHECK(tailwright_permit_leave(tailwright_gate_enter(gate, 5, 0)) == 0);
	CHECK(pthread_setspecific(ending, &keys) == 0);
	return NULL;
}

/* Destructors of a thread that has used the gate, or uses it first there; the gate is empty afterwards. */
static void thread_ends(void)
{
	pthread_t thread;
	tailwright_permit *permit;

	CHECK(pthread_key_create(&ending, end_key) == 0);
	for (int used = 0; used < 2; used++) {
		keys = objects = 0;
		CHECK(pthread_create(&thread, NULL, use_and_end, used ? &keys : NULL) == 0);
		joined(thread);
		CHECK(keys == 4 && objects == 1);
		CHECK((permit = tailwright_gate_enter(gate, 5, 1000000)) && tailwright_permit_leave(permit) == 0);
	}
}

int main(void)
{
	static const int by_key[REQUESTS] = { 10, 20, 30, 40 }, by_arrival[REQUESTS] = { 30, 10, 40, 20 };
	struct tailwright_gate_settings settings = {
		.limit = 1, .workers = 1, .flags = TAILWRIGHT_GATE_ADMISSION_ONLY, .sentinel_ns = 1000000
	};
	tailwright_permit *permit;
	pthread_t thread;
	char text[512];
	size_t length;

	CHECK(tailwright_schedule_abi() == TAILWRIGHT_SCHEDULE_ABI);
	settings.flags = 64;
	CHECK(!tailwright_gate_new(&settings));
	settings.flags = TAILWRIGHT_GATE_ADMISSION_ONLY;
	CHECK((gate = tailwright_gate_new(&settings)));
	length = tailwright_gate_report(gate, text, sizeof(text));
	CHECK(length < sizeof(text));
	text[length] = 0;
	CHECK(strstr(text, "admission only") && strstr(text, "sentinel"));
	CHECK(tailwright_gate_report(gate, text, 1) == length);
	tailwright_gate_free(gate);

	settings.sentinel_ns = 0;
	CHECK((gate = tailwright_gate_new(&settings)));
	CHECK((permit = tailwright_gate_enter(gate, 5, 0)));
	CHECK(pthread_create(&thread, NULL, other_thread, permit) == 0);
	joined(thread);
	/* While it waits for something else, another request runs. */
	CHECK(tailwright_permit_block_begin(permit) == 0);
	CHECK(pthread_create(&thread, NULL, request, (void *)9) == 0);
	joined(thread);
	CHECK(done == 1 && order[0] == 9);
	CHECK(tailwright_permit_block_end(permit) == 0);
	CHECK(tailwright_permit_leave(permit) == 0);
	tailwright_gate_free(gate);

	served_in(by_key, 0);
	served_in(by_arrival, TAILWRIGHT_GATE_BY_ARRIVAL);
	settings.limit = 2;
	CHECK((gate = tailwright_gate_new(&settings)));
	thread_ends();
	tailwright_gate_free(gate);

	CHECK((gate = tailwright_gate_new(NULL)));
	CHECK((permit = tailwright_gate_enter(gate, 1, 1)));
	tailwright_gate_free(gate);
	CHECK(tailwright_permit_leave(permit) == 0);
	tailwright_gate_free(NULL);
	CHECK(!tailwright_gate_enter(NULL, 1, 0) && tailwright_permit_leave(NULL) == -1);
	CHECK(tailwright_gate_report(NULL, text, sizeof(text)) == 0);
	puts("all of it");
	return 0;
}
