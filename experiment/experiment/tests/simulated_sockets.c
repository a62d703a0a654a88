// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * The programs of bpf/sockets.bpf.c on simulated sockets, with servers that set the option, connections that begin and
 * close, and refusals at random, also while a program runs. Beside each socket the simulation keeps the value that it
 * would have if only its server had set it: in the end, the socket has that value.
 *
 * Arguments: the first seed and the number of seeds. Prints the number of events of each kind, or the first error.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Replaces bpf/kernel.h, the declarations of the real kernel. */
#define TAILWRIGHT_KERNEL_H
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
#define SEC(name)
#define INLINE static inline
struct sock_common {
	u16 skc_num;
	unsigned char skc_state;
};
struct bpf_iter__tcp {
	void *meta;
	struct sock_common *sk_common;
};
enum {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_F_NO_PREALLOC = 1 << 0,
	BPF_F_CLONE = 1 << 9,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1 << 0,
	SOL_TCP = 6,
	TCP_NODELAY = 1,
	TCP_CONGESTION = 13,
	TCP_TIME_WAIT = 6,
	TCP_LISTEN = 10,
	TCP_NEW_SYN_RECV = 12,
};
static void *bpf_map_lookup_elem(void *map, const void *key);
static long bpf_setsockopt(void *socket, int level, int option, const void *value, int length);
static long bpf_getsockopt(void *socket, int level, int option, void *value, int length);
static void *bpf_sk_storage_get(void *map, void *socket, const void *value, u64 flags);
static long bpf_sk_storage_delete(void *map, void *socket);
static long bpf_probe_read_user(void *into, u32 size, const void *from);
static long bpf_probe_read_kernel(void *into, u32 size, const void *from);
static long bpf_probe_read_kernel_str(void *into, u32 size, const void *from);

#include "../bpf/sockets.bpf.c"

#define SOCKETS 8
#define PORT 80

struct simulated {
	struct sock_common sk; /* the first: programs have its address */
	int is_open;
	int now, without_us; /* TCP_NODELAY, as it is and as it would be */
	int has_record;
	struct socket_record record;
};

/* The first one listens. */
static struct simulated sockets[SOCKETS];
/* A connection that has its options from the listening socket, and not its record yet. */
static struct simulated half_made;
static int is_making, is_setting_listening, refusals_percent;
static struct pass_request request;
static struct pass_counts counted;
static u64 port_words[1024];
static u64 state;
static u64 events[8];
enum { EVENT_CONNECTION, EVENT_BETWEEN, EVENT_CLOSED, EVENT_SERVER_SET, EVENT_ON, EVENT_OFF, EVENT_KILLED, EVENT_REFUSED };

static u32 random_below(u32 limit)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (u32)(state >> 33) % limit;
}

static struct simulated *any_open(void)
{
	struct simulated *one = &sockets[random_below(SOCKETS)];
	return one->is_open ? one : &sockets[0];
}

static void begin_connection(void)
{
	if (is_making || is_setting_listening)
		return;
	half_made = sockets[0];
	half_made.has_record = 0;
	half_made.sk.skc_state = 1;
	is_making = 1;
}

static void finish_connection(void)
{
	int index;

	if (!is_making)
		return;
	is_making = 0;
	events[EVENT_CONNECTION]++;
	half_made.has_record = sockets[0].has_record;
	half_made.record = sockets[0].record;
	for (index = 1; index < SOCKETS; index++)
		if (!sockets[index].is_open) {
			sockets[index] = half_made;
			return;
		}
}

/* Receiving packets does not wait for the lock of a listening socket. */
static void receive_in_between(void)
{
	if (random_below(4))
		return;
	events[EVENT_BETWEEN]++;
	if (random_below(2))
		begin_connection();
	else
		finish_connection();
}

static int is_refused(void)
{
	int refused = random_below(100) < (u32)refusals_percent;
	events[EVENT_REFUSED] += refused;
	return refused;
}

static void *bpf_map_lookup_elem(void *map, const void *key)
{
	u32 index = *(const u32 *)key;
	if (map == (void *)&ports)
		return &port_words[index];
	return map == (void *)&requests ? (void *)&request : (void *)&counted;
}

static long bpf_getsockopt(void *socket, int level, int option, void *value, int length)
{
	memcpy(value, &((struct simulated *)socket)->now, length);
	return level != SOL_TCP || option != TCP_NODELAY;
}

static long bpf_setsockopt(void *socket, int level, int option, const void *value, int length)
{
	receive_in_between();
	/* Restoring is never refused here, so that all sockets can be compared in the end. */
	if (request.kind == PASS_SET && is_refused())
		return -12;
	memcpy(&((struct simulated *)socket)->now, value, length);
	receive_in_between();
	return level != SOL_TCP || option != TCP_NODELAY;
}

static void *bpf_sk_storage_get(void *map, void *socket, const void *value, u64 flags)
{
	struct simulated *one = socket;

	(void)map;
	receive_in_between();
	if (!one->has_record && (flags & BPF_LOCAL_STORAGE_GET_F_CREATE) && !is_refused()) {
		one->record = *(const struct socket_record *)value;
		one->has_record = 1;
	}
	return one->has_record ? &one->record : 0;
}

static long bpf_sk_storage_delete(void *map, void *socket)
{
	(void)map;
	receive_in_between();
	((struct simulated *)socket)->has_record = 0;
	return 0;
}

static long bpf_probe_read_user(void *into, u32 size, const void *from)
{
	memcpy(into, from, size);
	return 0;
}

static long bpf_probe_read_kernel(void *into, u32 size, const void *from)
{
	return bpf_probe_read_user(into, size, from);
}

static long bpf_probe_read_kernel_str(void *into, u32 size, const void *from)
{
	return bpf_probe_read_user(into, size, from);
}

static void pass_over(struct simulated *one)
{
	struct bpf_iter__tcp context = { 0, &one->sk };

	/* A lock is waited for by the server and by passes. */
	if (one->is_open)
		tw_pass(&context);
}

/*
 * A server sets the option: the programs run before and behind it, and passes come in between, before it has the lock of
 * the socket or when it has given it back.
 */
static void server_sets(struct simulated *one, int value)
{
	u64 arguments[7] = { (u64)(unsigned long)one, SOL_TCP, TCP_NODELAY, (u64)(unsigned long)&value, 0, sizeof(int), 0 };

	/*
	 * That a server sets the option of its listening socket just between the two parts of a connection that is made is left
	 * out: the connection then has the option from before, and the record from behind.
	 */
	if (one == &sockets[0])
		finish_connection();
	events[EVENT_SERVER_SET]++;
	is_setting_listening = one == &sockets[0];
	tw_setting_no_delay(arguments);
	if (!random_below(3))
		pass_over(one);
	one->now = one->without_us = value;
	if (!random_below(3))
		pass_over(one);
	tw_no_delay_set(arguments);
	is_setting_listening = 0;
}

/* Servers and clients continue while a pass goes from socket to socket. */
static void live(void)
{
	switch (random_below(6)) {
	case 0:
		begin_connection();
		break;
	case 1:
		finish_connection();
		break;
	case 2:
		server_sets(any_open(), random_below(2));
		break;
	case 3: {
		struct simulated *one = any_open();
		if (one != &sockets[0] && !random_below(4)) {
			events[EVENT_CLOSED]++;
			one->is_open = 0;
		}
		break;
	}
	}
}

static void pass(u64 kind, int stops)
{
	int index;

	request.kind = kind;
	memset(&counted, 0, sizeof(counted));
	for (index = 0; index < SOCKETS; index++) {
		pass_over(&sockets[index]);
		live();
		/* The program is killed. */
		if (stops && !random_below(SOCKETS))
			return;
	}
}

static void take_all_back(void)
{
	pass(PASS_TAKE_BACK, 0);
	/* The wait for connections that are just being made. */
	finish_connection();
	do
		pass(PASS_END, 0);
	while (counted.recorded[0] + counted.recorded[1]);
	events[EVENT_OFF]++;
	/* No pass comes any more. */
	request.kind = PASS_COUNT;
}

static int is_as_without_us(u64 seed)
{
	int index;

	for (index = 0; index < SOCKETS; index++) {
		struct simulated *one = &sockets[index];
		if (one->is_open && one->now != one->without_us) {
			printf("seed %llu: socket %d has %d instead of %d\n", seed, index, one->now, one->without_us);
			return 0;
		}
	}
	return 1;
}

static int play(u64 seed)
{
	int period, index;

	state = seed * 2654435769ULL + 1;
	memset(sockets, 0, sizeof(sockets));
	is_making = 0;
	refusals_percent = random_below(2) ? 10 : 0;
	sockets[0] = (struct simulated){ .sk = { PORT, TCP_LISTEN }, .is_open = 1 };
	sockets[0].now = sockets[0].without_us = random_below(2);
	for (period = 1; period <= 3; period++) {
		for (index = 0; index < 8; index++)
			live();
		request.option = TCP_NODELAY;
		request.period = period;
		request.wanted.words[0] = random_below(2);
		request.is_later = 0;
		for (index = random_below(3); index >= 0; index--) {
			pass(PASS_SET, 0);
			request.is_later = 1;
		}
		events[EVENT_ON]++;
		/* Killed while it sets or takes back; the next program knows the records alone. */
		if (!random_below(3)) {
			events[EVENT_KILLED]++;
			pass(random_below(2) ? PASS_SET : PASS_TAKE_BACK, 1);
			request.period = 0;
			request.wanted.words[0] = 0;
			request.kind = PASS_COUNT;
			for (index = 0; index < 8; index++)
				live();
		}
		take_all_back();
		if (!is_as_without_us(seed))
			return 0;
	}
	return 1;
}

int main(int count, char **arguments)
{
	u64 seed, first = count > 1 ? strtoull(arguments[1], 0, 10) : 0, seeds = count > 2 ? strtoull(arguments[2], 0, 10) : 1;

	port_words[PORT >> 6] |= 1ULL << (PORT & 63);
	for (seed = first; seed < first + seeds; seed++)
		if (!play(seed))
			return 1;
	printf("connections %llu, in between %llu, closed %llu, set by servers %llu, on %llu, off %llu, killed %llu, refused %llu\n",
	       events[0], events[1], events[2], events[3], events[4], events[5], events[6], events[7]);
	return 0;
}
