// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * Reports what happens to the bytes of the requests and answers of chosen server ports, as a stream of events.
 *
 * Like the rest of the repository, this file is licensed under MIT or Apache-2.0, as you choose. The licence that is
 * declared to the kernel, "Dual MIT/GPL", lets the kernel run it.
 *
 * Nothing is joined here: which events belong to one request is decided in user space. Each program leaves as soon as
 * it knows that a packet, socket or thread is of no interest. State in the kernel is tables of fixed size, which may
 * forget: an entry that was overwritten is found to be missing, never taken for another one.
 *
 * All programs are attached to tracepoints with type information (tp_btf). Where an older kernel lacks one of three, its
 * place is taken by programs at the functions that pass it in newer ones (fentry, fexit); the loader chooses.
 */
#include "bytes.h"
#include "packets.h"
#include "threads.h"

#define FAMILY_IPV4 2
#define FAMILY_IPV6 10
#define STATE_ESTABLISHED 1
#define STATE_SYN_RECEIVED 3
#define STATE_TIME_WAIT 6
#define STATE_CLOSE 7
#define STATE_LISTEN 10
#define STATE_NEW_SYN_RECV 12
#define TCP_FLAG_PUSH 0x08

/*
 * When packets arrived from the wire. An entry is one word, so that it is read and written whole: 16 bits that say whose
 * it is and the low 48 bits of the time in nanoseconds, which repeat after 78 hours.
 */
#define STAMPS 4096
#define TIME_BITS 48
#define TIME_MASK ((1ull << TIME_BITS) - 1)

u64 wire_stamps[STAMPS];

INLINE u64 whole_time(u64 stamp, u64 now)
{
	u64 time = (now & ~TIME_MASK) | (stamp & TIME_MASK);
	return time > now ? time - (1ull << TIME_BITS) : time;
}

/*
 * A number for a packet or socket that is the same in all programs: the distance of its address from a table here. The
 * address itself is not for arithmetic, and not for user space.
 */
INLINE u64 number_of(const void *object)
{
	u64 number = (u64)object;
	asm volatile("%0 -= %1" : "+r"(number) : "r"(wire_stamps));
	return number;
}

/* Packets are at multiples of 256 bytes, or nearly. */
INLINE u32 wire_slot(u64 packet) { return (packet >> 8) & (STAMPS - 1); }
INLINE u64 wire_owner(u64 packet) { return ((packet >> 20) ^ (packet << 8)) & 0xffff; }

/* Whosever the packet is: to look at its headers takes longer. The network stack takes the stamp away again. */
INLINE void stamp_wire(const struct sk_buff *skb)
{
	u64 packet = number_of(skb);
	wire_stamps[wire_slot(packet)] = wire_owner(packet) << TIME_BITS | (bpf_ktime_get_ns() & TIME_MASK);
}

/* T0: a virtual device or loopback hands a packet to the queue of a CPU. */
SEC("tp_btf/netif_rx")
int tw_netif_rx(u64 *context)
{
	stamp_wire((const struct sk_buff *)context[0]);
	return 0;
}

/* T0: a driver hands a packet to receive offload, which may keep it back to merge it with those that follow. */
SEC("tp_btf/napi_gro_receive_entry")
int tw_gro_receive(u64 *context)
{
	stamp_wire((const struct sk_buff *)context[0]);
	return 0;
}

/* T1: the network stack begins with a packet. */
SEC("tp_btf/netif_receive_skb")
int tw_arrival(u64 *context)
{
	const struct sk_buff *skb = (const struct sk_buff *)context[0];
	struct headers headers = {};
	struct event *event;
	u64 packet = number_of(skb), flow, now, stamp = wire_stamps[wire_slot(packet)];
	wire_stamps[wire_slot(packet)] = 0;
	if (!read_incoming(skb, &headers))
		return 0;
	flow = flow_of(&headers.ends);
	if (!is_chosen(flow))
		return 0;
	now = bpf_ktime_get_ns();
	event = begin_event(EVENT_ARRIVAL, now, flow);
	if (!event)
		return 0;
	if (stamp && stamp >> TIME_BITS == wire_owner(packet))
		event->earlier = whole_time(stamp, now);
	set_ends(event, &headers.ends);
	if (headers.flags & TCP_FLAG_PUSH && !headers.ends.is_udp)
		event->flags |= FLAG_PUSH;
	event->begin = headers.ends.is_udp ? 0 : headers.begin;
	event->end = event->begin + headers.bytes;
	event->socket = datagram_head(skb, skb->data, &headers);
	end_event(event);
	return 0;
}

INLINE int is_ip_socket(const struct sock *sk)
{
	u16 family = sk->__sk_common.skc_family;
	return family == FAMILY_IPV4 || family == FAMILY_IPV6;
}

/* Whether a socket is a TCP connection or UDP socket of an observed port. */
INLINE int is_observed_socket(const struct sock *sk, u8 *is_udp)
{
	u8 state;
	u16 protocol;
	if (!is_ip_socket(sk) || !is_observed(sk->__sk_common.skc_num))
		return 0;
	state = sk->__sk_common.skc_state;
	/* These are not whole sockets, or have no data. */
	if (state == STATE_LISTEN || state == STATE_TIME_WAIT || state == STATE_NEW_SYN_RECV)
		return 0;
	protocol = sk->sk_protocol;
	*is_udp = protocol == PROTOCOL_UDP;
	return protocol == PROTOCOL_TCP || protocol == PROTOCOL_UDP;
}

INLINE void ends_of_socket(const struct sock *sk, u16 port, struct ends *ends)
{
	ends->local_port = port;
	ends->peer_port = SWAP16(sk->__sk_common.skc_dport);
	/* An IPv4 connection of an IPv6 socket has both; its packets are IPv4. */
	ends->is_ipv6 = sk->__sk_common.skc_family == FAMILY_IPV6 &&
			!(sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[0] == 0 &&
			  sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[1] == 0 &&
			  sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[2] == SWAP32(0xffff));
	if (!ends->is_ipv6) {
		ends->peer[0] = sk->__sk_common.skc_daddr;
		ends->local[0] = sk->__sk_common.skc_rcv_saddr;
		return;
	}
#pragma unroll
	for (int word = 0; word < 4; word++) {
		ends->peer[word] = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[word];
		ends->local[word] = sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[word];
	}
}

INLINE u64 flow_of_socket(const struct sock *sk, u16 port)
{
	struct ends ends = {};
	ends_of_socket(sk, port, &ends);
	return flow_of(&ends);
}

/* A socket that an event is about. */
struct subject {
	const struct tcp_sock *tcp; /* 0: UDP */
	u64 flow;                   /* of TCP */
	u16 port;
};

/* False if nothing is to be said of the socket. */
INLINE int find_subject(const struct sock *sk, struct subject *subject)
{
	u8 is_udp;
	subject->tcp = 0;
	subject->flow = 0;
	if (!is_observed_socket(sk, &is_udp))
		return 0;
	subject->port = sk->__sk_common.skc_num;
	if (is_udp)
		return 1;
	subject->flow = flow_of_socket(sk, subject->port);
	if (!is_chosen(subject->flow))
		return 0;
	subject->tcp = bpf_skc_to_tcp_sock(sk);
	return subject->tcp != 0;
}

INLINE struct event *begin_event_of(u8 kind, const struct sock *sk, const struct subject *subject)
{
	struct event *event = begin_event(kind, bpf_ktime_get_ns(), subject->flow);
	if (event) {
		event->socket = number_of(sk);
		event->flags = subject->tcp ? 0 : FLAG_UDP;
		event->local_port = subject->port;
	}
	return event;
}

/* T2: data is in a socket, and whoever waits for it is about to be woken. */
INLINE int report_ready(const struct sock *sk)
{
	struct subject subject;
	struct event *event;
	if (!find_subject(sk, &subject))
		return 0;
	event = begin_event_of(EVENT_READY, sk, &subject);
	if (!event)
		return 0;
	if (subject.tcp) {
		event->begin = subject.tcp->copied_seq;
		event->end = subject.tcp->rcv_nxt;
		if (FIELD_EXISTS(((struct tcp_sock *)0)->is_mptcp) && subject.tcp->is_mptcp)
			event->flags |= FLAG_MPTCP;
	}
	end_event(event);
	return 0;
}

SEC("tp_btf/sk_data_ready")
int tw_ready(u64 *context) { return report_ready((const struct sock *)context[0]); }

/* Before Linux 6.3: sockets of servers in the kernel have a function of their own and are not seen. */
SEC("fentry/sock_def_readable")
int tw_ready_before_6_3(u64 *context) { return report_ready((const struct sock *)context[0]); }

/* Of task_struct.flags: a thread of the kernel. */
#define KERNEL_THREAD 0x00200000

/* Whether the current thread is one of the NFS server in the kernel. */
INLINE int is_kernel_nfs(void)
{
	const struct task_struct *who = bpf_get_current_task_btf();
	return who->flags & KERNEL_THREAD && who->comm[0] == 'n' && who->comm[1] == 'f' && who->comm[2] == 's' &&
	       who->comm[3] == 'd' && !who->comm[4];
}

/* Flags of recv: an urgent byte beside the stream, a copy of what stays in the socket, messages of the error queue. */
#define MSG_OOB 0x01
#define MSG_PEEK 0x02
#define MSG_ERRQUEUE 0x2000

/* T4: a thread has read from a socket. Calls that take nothing out of it do not count, but a copy shows the bytes. */
INLINE int report_receive(const struct sock *sk, int length, u32 flags)
{
	struct subject subject;
	struct event *event;
	if (length <= 0 || flags & MSG_ERRQUEUE || !find_subject(sk, &subject))
		return 0;
	if (subject.tcp && flags & MSG_OOB)
		return 0;
	/* With an offset a copy begins further on. */
	if (with_bytes && subject.tcp && !(flags & MSG_PEEK && sk->sk_peek_off >= 0))
		report_read_bytes(subject.flow, subject.tcp->copied_seq - (flags & MSG_PEEK ? 0 : length), length, flags);
	if (flags & MSG_PEEK)
		return 0;
	event = begin_event_of(EVENT_RECEIVE, sk, &subject);
	if (!event)
		return 0;
	set_thread(event);
	set_schedule(event);
	if (subject.tcp && is_kernel_nfs())
		event->flags |= FLAG_KERNEL_NFS;
	event->end = subject.tcp ? subject.tcp->copied_seq : length;
	event->begin = event->end - length;
	end_event(event);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int tw_receive(u64 *context)
{
	return report_receive((const struct sock *)context[0], (int)context[1], (u32)context[2]);
}

/* Before Linux 6.3. */
INLINE int report_return(u64 *context)
{
	return report_receive(((const struct socket *)context[0])->sk, (int)context[4], (u32)context[3]);
}

SEC("fexit/inet_recvmsg")
int tw_receive_before_6_3(u64 *context) { return report_return(context); }

SEC("fexit/inet6_recvmsg")
int tw_receive6_before_6_3(u64 *context) { return report_return(context); }

/* System calls of x86-64 that take bytes out of a connection by other means: TCP_ZEROCOPY_RECEIVE, splice. */
#define CALL_GETSOCKOPT 55
#define CALL_SPLICE 275

/* Of task_struct.flags: a thread that does what io_uring is asked for. */
#define IO_WORKER 0x10

/* Whether the current thread is in a call that takes bytes out of a connection and does not pass sock_recv_length. */
INLINE int is_in_splice(void)
{
	struct task_struct *who = bpf_get_current_task_btf();
	unsigned long call;
	if (who->flags & IO_WORKER)
		return 1;
	if (!FIELD_EXISTS(((struct pt_regs *)0)->orig_ax))
		return 0;
	call = bpf_task_pt_regs(who)->orig_ax;
	return call == CALL_SPLICE || call == CALL_GETSOCKOPT;
}

/* T4 of such calls, whose length is not known: everything from the last read on. */
SEC("tp_btf/tcp_rcv_space_adjust")
int tw_taken(u64 *context)
{
	const struct sock *sk = (const struct sock *)context[0];
	struct subject subject;
	struct event *event;
	if (!is_observed(sk->__sk_common.skc_num) || !is_in_splice() || !find_subject(sk, &subject))
		return 0;
	event = begin_event_of(EVENT_RECEIVE, sk, &subject);
	if (!event)
		return 0;
	set_thread(event);
	set_schedule(event);
	event->begin = subject.tcp ? subject.tcp->copied_seq : 0;
	event->end = event->begin;
	end_event(event);
	return 0;
}

/* T5: a thread hands bytes to TCP. */
INLINE int report_send(const struct sock *sk, const struct msghdr *message)
{
	struct subject subject;
	struct event *event;
	if (!find_subject(sk, &subject) || !subject.tcp)
		return 0;
	if (with_bytes)
		report_written_bytes(subject.flow, message, subject.tcp->write_seq, (u32)message->msg_iter.count);
	event = begin_event_of(EVENT_SEND, sk, &subject);
	if (!event)
		return 0;
	set_thread(event);
	set_schedule(event);
	event->begin = subject.tcp->write_seq;
	event->end = event->begin + (u32)message->msg_iter.count;
	end_event(event);
	return 0;
}

/* Fires again for every part of the bytes that is copied: the first one says all. */
SEC("tp_btf/tcp_sendmsg_locked")
int tw_send(u64 *context)
{
	const struct msghdr *message = (const struct msghdr *)context[1];
	if (message->msg_iter.iter_type == ENUM_VALUE(iter_type, ITER_UBUF) && message->msg_iter.iov_offset)
		return 0;
	return report_send((const struct sock *)context[0], message);
}

/* Before Linux 6.16. */
SEC("fentry/tcp_sendmsg_locked")
int tw_send_before_6_16(u64 *context)
{
	return report_send((const struct sock *)context[0], (const struct msghdr *)context[1]);
}

/*
 * A write has returned, after whoever reads the answer was woken, perhaps on this CPU. Not an event of its own: the
 * next read or write of the thread has the time.
 */
SEC("tp_btf/sock_send_length")
int tw_sent(u64 *context)
{
	u32 thread = bpf_get_current_pid_tgid();
	struct subject subject;
	if ((int)context[1] > 0 && is_known(thread) && find_subject((const struct sock *)context[0], &subject))
		record_of(thread)->freed = bpf_ktime_get_ns();
	return 0;
}

/* T5 of UDP: a thread looks for the way of an answer, which is the first that is seen of its write. */
INLINE void report_route(u8 protocol, u16 port)
{
	struct event *event;
	if (protocol != PROTOCOL_UDP || !is_observed(port))
		return;
	event = begin_event(EVENT_SEND, bpf_ktime_get_ns(), 0);
	if (!event)
		return;
	event->flags = FLAG_UDP;
	event->local_port = port;
	set_thread(event);
	set_schedule(event);
	end_event(event);
}

SEC("tp_btf/fib_table_lookup")
int tw_route(u64 *context)
{
	const struct flowi4 *flow = (const struct flowi4 *)context[1];
	report_route(flow->__fl_common.flowic_proto, SWAP16(flow->uli.ports.sport));
	return 0;
}

SEC("tp_btf/fib6_table_lookup")
int tw_route6(u64 *context)
{
	const struct flowi6 *flow = (const struct flowi6 *)context[3];
	report_route(flow->__fl_common.flowic_proto, SWAP16(flow->uli.ports.sport));
	return 0;
}

/* T6: a packet is handed to the network device. */
SEC("tp_btf/net_dev_start_xmit")
int tw_transmit(u64 *context)
{
	const struct sk_buff *skb = (const struct sk_buff *)context[0];
	const struct sock *sk = skb->sk;
	const unsigned char *network;
	struct headers headers = {};
	struct event *event;
	u64 flow, now;
	u8 is_udp;
	if (!sk || !is_observed_socket(sk, &is_udp))
		return 0;
	now = bpf_ktime_get_ns();
	network = skb->head + skb->network_header;
	/* The data begins with the header of the link. */
	if (!read_headers(skb, network, skb->len - (u32)(network - skb->data), 0, &headers) || !headers.bytes)
		return 0;
	flow = flow_of(&headers.ends);
	if (!is_chosen(flow))
		return 0;
	event = begin_event(EVENT_TRANSMIT, now, flow);
	if (!event)
		return 0;
	set_thread(event);
	set_ends(event, &headers.ends);
	event->socket = number_of(sk);
	event->begin = is_udp ? 0 : headers.begin;
	event->end = event->begin + headers.bytes;
	event->earlier = datagram_head(skb, network, &headers);
	end_event(event);
	return 0;
}

/* TCP sends a part of an answer once more. */
SEC("tp_btf/tcp_retransmit_skb")
int tw_retransmit(u64 *context)
{
	const struct sock *sk = (const struct sock *)context[0];
	u8 is_udp;
	if (is_observed_socket(sk, &is_udp) && is_chosen(flow_of_socket(sk, sk->__sk_common.skc_num)))
		add_one(COUNT_RETRANSMITS);
	return 0;
}

/*
 * The beginning and the end of a connection. At the end its port is given back before, and is still in the field of the
 * header.
 */
SEC("tp_btf/inet_sock_set_state")
int tw_state(u64 *context)
{
	const struct sock *sk = (const struct sock *)context[0];
	const struct tcp_sock *tcp;
	struct event *event;
	u64 flow;
	u16 port = 0;
	int opens = (int)context[1] == STATE_SYN_RECEIVED && (int)context[2] == STATE_ESTABLISHED;
	if ((!opens && (int)context[2] != STATE_CLOSE) || !is_ip_socket(sk) || sk->sk_protocol != PROTOCOL_TCP)
		return 0;
	bpf_probe_read_kernel(&port, sizeof(port), &((const struct inet_sock *)sk)->inet_sport);
	port = SWAP16(port);
	if (!is_observed(port))
		return 0;
	flow = flow_of_socket(sk, port);
	if (!is_chosen(flow))
		return 0;
	tcp = bpf_skc_to_tcp_sock(sk);
	event = begin_event(opens ? EVENT_OPEN : EVENT_CLOSE, bpf_ktime_get_ns(), flow);
	if (!event)
		return 0;
	if (tcp)
		event->begin = tcp->copied_seq;
	end_event(event);
	return 0;
}

/* The ends of a connection whose socket is known by its address alone. False if it is not one, or not observed. */
INLINE int read_ends(const struct sock *sk, struct ends *ends)
{
	u16 family = 0, protocol = 0, peer_port = 0;
	bpf_probe_read_kernel(&family, sizeof(family), &sk->__sk_common.skc_family);
	bpf_probe_read_kernel(&protocol, sizeof(protocol), &sk->sk_protocol);
	if ((family != FAMILY_IPV4 && family != FAMILY_IPV6) || protocol != PROTOCOL_TCP)
		return 0;
	bpf_probe_read_kernel(&ends->local_port, sizeof(ends->local_port), &sk->__sk_common.skc_num);
	if (!is_observed(ends->local_port))
		return 0;
	bpf_probe_read_kernel(&peer_port, sizeof(peer_port), &sk->__sk_common.skc_dport);
	ends->peer_port = SWAP16(peer_port);
	if (family == FAMILY_IPV6) {
		bpf_probe_read_kernel(ends->peer, sizeof(ends->peer), &sk->__sk_common.skc_v6_daddr);
		bpf_probe_read_kernel(ends->local, sizeof(ends->local), &sk->__sk_common.skc_v6_rcv_saddr);
		ends->is_ipv6 = !(ends->peer[0] == 0 && ends->peer[1] == 0 && ends->peer[2] == SWAP32(0xffff));
	}
	if (!ends->is_ipv6) {
		bpf_probe_read_kernel(&ends->peer[0], 4, &sk->__sk_common.skc_daddr);
		bpf_probe_read_kernel(&ends->local[0], 4, &sk->__sk_common.skc_rcv_saddr);
	}
	return 1;
}

/* System calls of x86-64. */
#define CALL_ACCEPT 43
#define CALL_ACCEPT4 288

/* A connection has been accepted: its socket is behind the file that the system call returns. */
SEC("tp_btf/sys_exit")
int tw_accepted(u64 *context)
{
	const struct pt_regs *registers = (const struct pt_regs *)context[0];
	s64 number = (s64)context[1];
	struct file **table, *file = 0;
	struct socket *socket = 0;
	struct sock *sk = 0;
	struct ends ends = {};
	struct event *event;
	u64 flow;
	if (!FIELD_EXISTS(((struct pt_regs *)0)->orig_ax) || number < 0 ||
	    (registers->orig_ax != CALL_ACCEPT && registers->orig_ax != CALL_ACCEPT4))
		return 0;
	table = bpf_get_current_task_btf()->files->fdt->fd;
	if (bpf_probe_read_kernel(&file, sizeof(file), table + number) ||
	    bpf_probe_read_kernel(&socket, sizeof(socket), &file->private_data) ||
	    bpf_probe_read_kernel(&sk, sizeof(sk), &socket->sk) || !read_ends(sk, &ends))
		return 0;
	flow = flow_of(&ends);
	if (!is_chosen(flow))
		return 0;
	event = begin_event(EVENT_ACCEPT, bpf_ktime_get_ns(), flow);
	if (!event)
		return 0;
	set_thread(event);
	event->local_port = ends.local_port;
	end_event(event);
	return 0;
}

char licence[] SEC("license") = "Dual MIT/GPL";
