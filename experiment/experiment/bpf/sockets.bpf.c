// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * Sets an option of a server's open TCP sockets, and restores it, in passes over all TCP sockets of a network namespace:
 * those that listen, those that are connected, and those that wait to be accepted, no matter which processes have them
 * open. The old value is kept with the socket (socket storage), and is freed with it.
 *
 * Like the rest of the repository, this file is licensed under MIT or Apache-2.0, as you choose. The licence that is
 * declared to the kernel, "Dual MIT/GPL", lets the kernel run it.
 *
 * The kernel locks each socket while tw_pass handles it (since Linux 5.15); setting an option requires the lock.
 */
#include "kernel.h"
#include "rule.h"

#define NAME_BYTES 16

/* Action of a pass, set by src/linux/sockets/passes.rs. */
enum pass_kind { PASS_COUNT, PASS_SET, PASS_TAKE_BACK, PASS_END };

/* Parameters of a pass. */
struct pass_request {
	u64 kind;
	u64 option; /* TCP_NODELAY or TCP_CONGESTION */
	u64 period;
	u64 is_later; /* than the first one that sets it in this period */
	struct option_value wanted;
};

/* Results of a pass, for connected and for listening sockets. */
struct pass_counts {
	u64 have[2];     /* of the server: have the value */
	u64 have_not[2]; /* of the server: have another one */
	u64 changed[2];  /* have been given the value, or what was before */
	u64 again[2];    /* of those that have been given the value: the server had changed them */
	u64 recorded[2]; /* have a record */
	u64 ended[2];    /* whose record came to its end */
	u64 servers[2];  /* of these: have what the server set meanwhile */
	u64 failed[2];   /* refused to be looked at or changed */
};

struct {
	int (*type)[BPF_MAP_TYPE_SK_STORAGE];
	int (*map_flags)[BPF_F_NO_PREALLOC | BPF_F_CLONE];
	int *key;
	struct socket_record *value;
} records SEC(".maps");

struct {
	int (*type)[BPF_MAP_TYPE_ARRAY];
	int (*max_entries)[1];
	u32 *key;
	struct pass_request *value;
} requests SEC(".maps");

struct {
	int (*type)[BPF_MAP_TYPE_ARRAY];
	int (*max_entries)[1];
	u32 *key;
	struct pass_counts *value;
} counts SEC(".maps");

/* A bit for each port of the server. */
struct {
	int (*type)[BPF_MAP_TYPE_ARRAY];
	int (*max_entries)[1024];
	u32 *key;
	u64 *value;
} ports SEC(".maps");

INLINE int is_of_server(u16 port)
{
	u32 word = port >> 6;
	u64 *bits = bpf_map_lookup_elem(&ports, &word);
	return bits && *bits >> (port & 63) & 1;
}

INLINE long read_value(void *sk, u32 option, struct option_value *now)
{
	int number = 0;
	long error;

	now->words[0] = now->words[1] = 0;
	if (option == TCP_CONGESTION)
		return bpf_getsockopt(sk, SOL_TCP, TCP_CONGESTION, now, NAME_BYTES);
	error = bpf_getsockopt(sk, SOL_TCP, TCP_NODELAY, &number, sizeof(number));
	now->words[0] = number != 0;
	return error;
}

INLINE long write_value(void *sk, u32 option, const struct option_value *value)
{
	/* The kernel takes names and numbers from the stack of a program. */
	struct option_value copy = *value;
	int number = copy.words[0] != 0;

	if (option == TCP_CONGESTION)
		return bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, &copy, NAME_BYTES);
	return bpf_setsockopt(sk, SOL_TCP, TCP_NODELAY, &number, sizeof(number));
}

/* "cdg" could not be given back: the kernel does not let programs set it. */
INLINE int can_be_given_back(u32 option, const struct option_value *value)
{
	return option != TCP_CONGESTION || value->words[0] != ('c' | 'd' << 8 | 'g' << 16);
}

INLINE void set(void *sk, u32 kind, const struct pass_request *pass, struct pass_counts *count)
{
	struct socket_record *record = bpf_sk_storage_get(&records, sk, 0, 0), fresh = {};
	struct option_value now;
	enum set_step step;

	if (read_value(sk, pass->option, &now)) {
		count->failed[kind]++;
		return;
	}
	step = set_step(record, &now, &pass->wanted, pass->period);
	if (step == SET_HAS_IT) {
		count->have[kind]++;
		if (record && record->period != (u32)pass->period)
			bpf_sk_storage_delete(&records, sk);
		return;
	}
	if (!can_be_given_back(pass->option, &now)) {
		count->failed[kind]++;
		return;
	}
	if (step == SET_AGAIN) {
		note_server(record, &now);
	} else {
		fresh.before = now;
		fresh.made = pass->wanted;
		fresh.period = pass->period;
		/* Connections inherit the value of the listening socket: the server has set another one since. */
		fresh.is_servers = pass->is_later && pass->option == TCP_NODELAY;
		if (record)
			*record = fresh;
		else
			record = bpf_sk_storage_get(&records, sk, &fresh, BPF_LOCAL_STORAGE_GET_F_CREATE);
	}
	if (!record || write_value(sk, pass->option, &pass->wanted)) {
		count->failed[kind]++;
		bpf_sk_storage_delete(&records, sk);
		return;
	}
	count->have[kind]++;
	count->changed[kind]++;
	if (record->is_servers)
		count->again[kind]++;
}

INLINE void take_back(void *sk, u32 kind, const struct pass_request *pass, struct pass_counts *count)
{
	struct socket_record *record = bpf_sk_storage_get(&records, sk, 0, 0);
	struct option_value now;

	if (!record)
		return;
	count->recorded[kind]++;
	if (read_value(sk, pass->option, &now)) {
		count->failed[kind]++;
		return;
	}
	if (has_our_value(record, &now)) {
		if (write_value(sk, pass->option, &record->before)) {
			count->failed[kind]++;
			return;
		}
		count->changed[kind]++;
	}
	if (!record->is_taken_back) {
		count->ended[kind]++;
		if (is_left_to_server(record, &now))
			count->servers[kind]++;
	}
	record->is_taken_back = 1;
	/* A listening socket may be making a connection, which gets a copy of its record after its options. */
	if (!kind || pass->kind == PASS_END)
		bpf_sk_storage_delete(&records, sk);
}

INLINE void look(void *sk, u32 kind, const struct pass_request *pass, struct pass_counts *count)
{
	struct option_value now;

	if (bpf_sk_storage_get(&records, sk, 0, 0))
		count->recorded[kind]++;
	if (read_value(sk, pass->option, &now))
		count->failed[kind]++;
	else if (is_same(&now, &pass->wanted))
		count->have[kind]++;
	else
		count->have_not[kind]++;
}

SEC("iter/tcp")
int tw_pass(struct bpf_iter__tcp *ctx)
{
	struct sock_common *sk = ctx->sk_common;
	struct pass_request *pass;
	struct pass_counts *count;
	u32 zero = 0, kind;
	u8 state;

	if (!sk)
		return 0;
	state = sk->skc_state;
	/* Sockets in these states have no options. */
	if (state == TCP_TIME_WAIT || state == TCP_NEW_SYN_RECV)
		return 0;
	pass = bpf_map_lookup_elem(&requests, &zero);
	count = bpf_map_lookup_elem(&counts, &zero);
	if (!pass || !count)
		return 0;
	kind = state == TCP_LISTEN;
	if (pass->kind == PASS_TAKE_BACK || pass->kind == PASS_END) {
		take_back(sk, kind, pass, count);
		return 0;
	}
	/*
	 * Linux never forgets that the congestion control of a listening socket was set: its connections would never have the
	 * default of the machine again.
	 */
	if (!is_of_server(sk->skc_num) || (kind && pass->option == TCP_CONGESTION))
		return 0;
	if (pass->kind == PASS_SET)
		set(sk, kind, pass, count);
	else
		look(sk, kind, pass, count);
	return 0;
}

/* The arguments of tcp_setsockopt(sk, level, optname, optval, optlen): optval is two words, an address and its address space. */
enum { ARGUMENT_SOCKET, ARGUMENT_LEVEL, ARGUMENT_OPTION, ARGUMENT_VALUE, ARGUMENT_IS_KERNEL, ARGUMENT_LENGTH, RETURNED };

/*
 * Records the values that the server sets while the knob is on, as passes cannot detect one that equals ours: nginx sets
 * TCP_NODELAY of a connection once. It is recorded before and after the call: before, so that a pass in between that
 * restores the old value leaves the server's; after, because a pass in between may have made the record.
 */
INLINE void note_no_delay(u64 *ctx)
{
	void *sk = (void *)ctx[ARGUMENT_SOCKET];
	const void *from = (const void *)ctx[ARGUMENT_VALUE];
	struct option_value value = {};
	struct socket_record *record;
	int number = 0;
	long error;

	if ((int)ctx[ARGUMENT_LEVEL] != SOL_TCP || (int)ctx[ARGUMENT_OPTION] != TCP_NODELAY ||
	    (u32)ctx[ARGUMENT_LENGTH] < sizeof(number))
		return;
	record = bpf_sk_storage_get(&records, sk, 0, 0);
	if (!record)
		return;
	error = (u8)ctx[ARGUMENT_IS_KERNEL] ? bpf_probe_read_kernel(&number, sizeof(number), from)
					    : bpf_probe_read_user(&number, sizeof(number), from);
	if (error)
		return;
	value.words[0] = number != 0;
	note_server(record, &value);
}

SEC("fentry/tcp_setsockopt")
int tw_setting_no_delay(u64 *ctx)
{
	note_no_delay(ctx);
	return 0;
}

SEC("fexit/tcp_setsockopt")
int tw_no_delay_set(u64 *ctx)
{
	if (!(int)ctx[RETURNED])
		note_no_delay(ctx);
	return 0;
}

/* The same for tcp_set_congestion_control(sk, name, load, cap_net_admin). The kernel has locked the socket. */
SEC("fexit/tcp_set_congestion_control")
int tw_congestion_control_set(u64 *ctx)
{
	struct option_value value = {};
	struct socket_record *record;

	/* Only calls by processes load modules: without `load`, the call is our own. */
	if ((int)ctx[4] || !(u8)ctx[2])
		return 0;
	record = bpf_sk_storage_get(&records, (void *)ctx[0], 0, 0);
	if (record && bpf_probe_read_kernel_str(&value, NAME_BYTES, (const void *)ctx[1]) > 0)
		note_server(record, &value);
	return 0;
}

char licence[] SEC("license") = "Dual MIT/GPL";
