/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a service in C does with the gate; each check that fails ends it. */
#include "tailwright_schedule.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(holds) \
	do { \
		if (!(holds)) { \
			fprintf(stderr, "line %d: %s\n", __LINE__, #holds); \
			exit(1); \
		} \
	} while (0)

static tailwright_gate *gate;
static int order[3], done;

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
	tailwright_permit *permit = tailwright_gate_enter(gate, (uint64_t)(uintptr_t)key, 0);

	CHECK(permit);
	order[done++] = (int)(uintptr_t)key;
	CHECK(tailwright_permit_leave(permit) == 0);
	return NULL;
}

static void joined(pthread_t thread)
{
	CHECK(pthread_join(thread, NULL) == 0);
}

int main(void)
{
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
