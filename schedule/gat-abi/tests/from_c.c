/* Checks the promises of each function of the header. */
#include "tailwright_gat.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *other_thread(void *unused)
{
	struct tailwright_tag tag;
	assert(tailwright_gat_current(&tag) == TAILWRIGHT_UNTAGGED);
	return unused;
}

static void read_and_write(void)
{
	const char *header = "user=7,tailwright-start=12,tailwright-deadline=99";
	struct tailwright_tag tag = {1, 2};
	char text[64];
	size_t length;

	assert(tailwright_gat_read(NULL, 0, &tag) == TAILWRIGHT_UNTAGGED);
	assert(tailwright_gat_read("tailwright-start=x", 18, &tag) == TAILWRIGHT_MALFORMED);
	assert(tag.start_ns == 1 && tag.deadline_ns == 2);
	assert(tailwright_gat_read(header, strlen(header), &tag) == TAILWRIGHT_TAGGED);
	assert(tag.start_ns == 12 && tag.deadline_ns == 99);
	assert(tailwright_gat_read(header, strlen(header), NULL) == TAILWRIGHT_TAGGED);

	memset(text, '#', sizeof(text));
	assert(tailwright_gat_strip(header, strlen(header), text, 5) == 6);
	assert(text[0] == '#');
	assert(tailwright_gat_strip(header, strlen(header), text, 6) == 6);
	assert(!memcmp(text, "user=7#", 7));
	assert(tailwright_gat_strip("tailwright-start=1", 18, NULL, 0) == 0);

	assert(tailwright_gat_write(header, strlen(header), NULL, text, sizeof(text)) == 6);

	tag.deadline_ns = 0;
	length = tailwright_gat_write(header, strlen(header), &tag, text, sizeof(text));
	assert(length == 26 && !memcmp(text, "tailwright-start=12,user=7", length));
}

static void edge_and_inner_tier(void)
{
	struct tailwright_tag first, second, accepted;
	char text[64];
	size_t length;

	tailwright_gat_enter(&first);
	tailwright_gat_enter(&second);
	assert(second.start_ns > first.start_ns && first.start_ns > 1700000000000000000ull);
	length = tailwright_gat_write(NULL, 0, &first, text, sizeof(text));
	tailwright_gat_receive(text, length, &accepted);
	assert(accepted.start_ns == first.start_ns && accepted.deadline_ns == 0);
	tailwright_gat_receive("tailwright-start=18446744073709551615", 37, &accepted);
	assert(accepted.start_ns < first.start_ns + 3600000000000ull);
}

static void *enter_for_ever(void *over)
{
	struct tailwright_tag tag;
	while (!atomic_load((atomic_int *)over)) {
		tailwright_gat_enter(&tag);
		tailwright_gat_receive("tailwright-start=7", 18, &tag);
	}
	return NULL;
}

/* Forks a process whose other threads are in the middle of a call, from a thread that works for a request. */
static void forks(void)
{
	static atomic_int over;
	struct tailwright_tag own = {5, 6};
	pthread_t thread;

	tailwright_gat_set_current(&own);
	assert(!pthread_create(&thread, NULL, enter_for_ever, &over));
	for (int child = 0; child < 200; child++) {
		int status;
		struct tailwright_tag tag;
		pid_t number = fork();
		assert(number >= 0);
		if (number == 0) {
			alarm(60);
			tailwright_gat_enter(&tag);
			tailwright_gat_receive("tailwright-start=7", 18, &tag);
			assert(tailwright_gat_current(&tag) == TAILWRIGHT_TAGGED && tag.start_ns == 5);
			tailwright_gat_set_current(NULL);
			assert(tailwright_gat_current(&tag) == TAILWRIGHT_UNTAGGED);
			_exit(0);
		}
		assert(tailwright_gat_current(&tag) == TAILWRIGHT_TAGGED && tag.deadline_ns == 6);
		assert(waitpid(number, &status, 0) == number && status == 0);
	}
	atomic_store(&over, 1);
	assert(!pthread_join(thread, NULL));
	tailwright_gat_set_current(NULL);
}

static void current(void)
{
	struct tailwright_tag tag = {5, 6}, found;
	pthread_t thread;

	assert(tailwright_gat_current(&found) == TAILWRIGHT_UNTAGGED);
	tailwright_gat_set_current(&tag);
	assert(tailwright_gat_current(&found) == TAILWRIGHT_TAGGED && found.start_ns == 5 && found.deadline_ns == 6);
	assert(!pthread_create(&thread, NULL, other_thread, NULL) && !pthread_join(thread, NULL));
	assert(tailwright_gat_is_scheduled() == 0);
	assert(tailwright_gat_order_by_deadline(86400000000001ull) == -1);
	assert(tailwright_gat_order_by_deadline(50000000) == 0);
	tailwright_gat_set_current(&tag);
	assert(tailwright_gat_order_by_deadline(0) == 0);
	tailwright_gat_set_current(NULL);
	assert(tailwright_gat_current(&found) == TAILWRIGHT_UNTAGGED);
}

/* glibc's function that registers destructors of C++ thread_local objects. */
extern int __cxa_thread_atexit_impl(void (*destructor)(void *), void *object, void *library);
extern void *__dso_handle;

static pthread_key_t ending;
static atomic_int endings;

/* All functions, when the thread ends. */
static void call_all(void)
{
	struct tailwright_tag tag = {7, 0}, found;
	char text[64];

	assert(tailwright_gat_read("tailwright-start=7", 18, &found) == TAILWRIGHT_TAGGED && found.start_ns == 7);
	assert(tailwright_gat_strip("user=7,tailwright-start=1", 25, text, sizeof(text)) == 6);
	assert(tailwright_gat_write("user=7", 6, &tag, text, sizeof(text)) == 25);
	tailwright_gat_receive("user=7", 6, &found);
	assert(found.start_ns > 1700000000000000000ull);
	tailwright_gat_enter(&tag);
	tailwright_gat_set_current(&tag);
	assert(tailwright_gat_current(&found) == TAILWRIGHT_TAGGED && found.start_ns == tag.start_ns);
	tailwright_gat_set_current(NULL);
	assert(tailwright_gat_is_scheduled() == 0 && tailwright_gat_order_by_deadline(0) == 0);
	atomic_fetch_add(&endings, 1);
}

static void end_object(void *unused)
{
	(void)unused;
	call_all();
}

/* Destructors of keys run in rounds, as long as one sets its key again. */
static void end_key(void *round)
{
	call_all();
	if ((size_t)round < 3)
		assert(!pthread_setspecific(ending, (void *)((size_t)round + 1)));
}

static void *use_and_end(void *used)
{
	assert(!__cxa_thread_atexit_impl(end_object, NULL, &__dso_handle));
	if (used) {
		call_all();
		atomic_fetch_sub(&endings, 1);
	}
	assert(!pthread_setspecific(ending, (void *)1));
	return NULL;
}

/* Destructors of a thread that has used the library, or uses it there for the first time. */
static void thread_ends(void)
{
	pthread_t thread;

	assert(!pthread_key_create(&ending, end_key));
	for (int used = 0; used < 2; used++) {
		assert(!pthread_create(&thread, NULL, use_and_end, used ? &endings : NULL) && !pthread_join(thread, NULL));
		assert(atomic_exchange(&endings, 0) == 4);
	}
}

/* Other members are dropped only to make room for a tag. */
static void long_headers(void)
{
	static char others[12000], text[12000];
	struct tailwright_tag tag = {5, 0};

	memset(others, 'a', sizeof(others));
	assert(tailwright_gat_write(others, 10000, NULL, text, sizeof(text)) == 10000);
	assert(tailwright_gat_write(others, 10000, &tag, text, sizeof(text)) == 18);
	for (size_t at = 1; at < sizeof(others); at += 2)
		others[at] = ',';
	assert(tailwright_gat_write(others, sizeof(others), NULL, text, sizeof(text)) == sizeof(others));
	assert(tailwright_gat_write(others, sizeof(others), &tag, text, sizeof(text)) <= 8192);
}

int main(void)
{
	assert(tailwright_gat_abi() == TAILWRIGHT_GAT_ABI);
	read_and_write();
	edge_and_inner_tier();
	current();
	forks();
	thread_ends();
	long_headers();
	puts("all of it");
	return 0;
}
