/*
 * A program that tags its requests by libtailwright_gat. It reports by its exit code and its output.
 *
 * spin CPU START DEADLINE SLO UNTIL   works for a request until then; prints the CPU time that it got, in nanoseconds
 * forks CPU START CHILD UNTIL         the same, with a child that is forked after the first tag and has a request of its own
 * threads COUNT                       tags threads until it is killed
 * joins FILE MODE...                  writes its process id to the file of a control group, and continues with MODE
 * member                              0: tags are read and settings may not be opened; 1: no tags; 2: settings may be opened
 */
#define _GNU_SOURCE
#include "tailwright_gat.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

static uint64_t number(const char *text) { return strtoull(text, NULL, 10); }

static void keep_to(const char *cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(number(cpu), &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		exit(10);
}

static void work(uint64_t until)
{
	while (clock_ns(CLOCK_MONOTONIC) < until) {
		/* Lets the emulator switch to other CPUs. */
		__builtin_ia32_pause();
		for (volatile int step = 0; step < 2000; step++)
			;
	}
	printf("%llu\n", (unsigned long long)clock_ns(CLOCK_PROCESS_CPUTIME_ID));
	fflush(stdout);
}

static int spin(char **arguments)
{
	struct tailwright_tag tag = {number(arguments[1]), number(arguments[2])};
	keep_to(arguments[0]);
	if (tailwright_gat_order_by_deadline(number(arguments[3])))
		return 11;
	tailwright_gat_set_current(&tag);
	if (!tailwright_gat_is_scheduled())
		return 12;
	work(number(arguments[4]));
	return 0;
}

static int forks(char **arguments)
{
	struct tailwright_tag own = {number(arguments[1]), 0}, of_child = {number(arguments[2]), 0};
	int status;
	pid_t child;

	keep_to(arguments[0]);
	tailwright_gat_set_current(&own);
	if (!tailwright_gat_is_scheduled())
		return 12;
	child = fork();
	if (child < 0)
		return 13;
	if (!child) {
		tailwright_gat_set_current(&of_child);
		if (!tailwright_gat_is_scheduled())
			_exit(12);
		work(number(arguments[3]));
		_exit(0);
	}
	/* The child registers on another CPU's time or ours: it is not waited for, since it is the younger one. */
	work(number(arguments[3]));
	if (waitpid(child, &status, 0) != child || status)
		return 14;
	return tailwright_gat_is_scheduled() ? 0 : 15;
}

static void *tag_for_ever(void *own)
{
	struct tailwright_tag tag = {(uint64_t)(uintptr_t)own + 1, 0};
	for (;;) {
		tailwright_gat_set_current(&tag);
		tailwright_gat_set_current(NULL);
	}
	return NULL;
}

static int threads(char **arguments)
{
	for (uint64_t count = number(arguments[0]); count > 0; count--) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, tag_for_ever, (void *)(uintptr_t)count))
			return 16;
	}
	pause();
	return 17;
}

/* BPF_OBJ_GET of a file that only root may open. */
static int settings_are_refused(void)
{
	struct {
		uint64_t path;
		uint32_t object, flags;
	} attributes = {(uint64_t)(uintptr_t)"/sys/fs/bpf/tailwright/control", 0, 0};
	return syscall(SYS_bpf, 7, &attributes, sizeof(attributes)) < 0 && (errno == EACCES || errno == EPERM);
}

static int join(const char *file)
{
	FILE *group = fopen(file, "w");
	return group && fputs("0", group) >= 0 && !fclose(group);
}

int main(int count, char **arguments)
{
	const char *mode = count > 1 ? arguments[1] : "";
	if (!strcmp(mode, "joins") && count > 3) {
		if (!join(arguments[2]))
			return 18;
		return main(count - 2, arguments + 2);
	}
	if (!strcmp(mode, "spin") && count == 7)
		return spin(arguments + 2);
	if (!strcmp(mode, "forks") && count == 6)
		return forks(arguments + 2);
	if (!strcmp(mode, "threads") && count == 3)
		return threads(arguments + 2);
	if (!strcmp(mode, "member"))
		return tailwright_gat_is_scheduled() ? (settings_are_refused() ? 0 : 2) : 1;
	return 20;
}
