/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Whose a packet is: its headers, the connection that they name, and whether that is observed.
 */
#ifndef TAILWRIGHT_PACKETS_H
#define TAILWRIGHT_PACKETS_H

#include "bytes.h"

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define PROTOCOL_TCP 6
#define PROTOCOL_UDP 17
#define TCP_FLAG_SYN 0x02
/* A fragment that is not the first has no port. */
#define FRAGMENT_OFFSET 0x1fff

/* Set by the loader before the programs are loaded. */
const volatile u8 ports[8192];       /* a bit for each port that is observed */
const volatile u32 flows_limit = ~0; /* TCP connections whose hash, high 32 bits, is above are left out */

INLINE int is_observed(u16 port)
{
	u32 at = port >> 3;
	/* Otherwise the compiler concludes what verifiers of older kernels do not see when bytes were swapped. */
	asm volatile("" : "+r"(at));
	return ports[at & (sizeof(ports) - 1)] & (1 << (port & 7));
}

INLINE u64 mix(u64 hash, u64 value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
	return hash ^ (hash >> 29);
}

/* The two ends of a connection, as the server sees them: addresses as on the wire, ports as numbers. */
struct ends {
	u32 peer[4];
	u32 local[4];
	u16 peer_port;
	u16 local_port;
	u8 is_udp;
	u8 is_ipv6;
};

INLINE u64 flow_of(const struct ends *ends)
{
	u64 hash = mix(ends->is_udp, (u64)ends->peer_port << 16 | ends->local_port);
	hash = mix(hash, (u64)ends->peer[0] << 32 | ends->local[0]);
	if (ends->is_ipv6) {
		hash = mix(hash, (u64)ends->peer[1] << 32 | ends->local[1]);
		hash = mix(hash, (u64)ends->peer[2] << 32 | ends->local[2]);
		hash = mix(hash, (u64)ends->peer[3] << 32 | ends->local[3]);
	}
	/* The high bits, by which connections are chosen, come out of a multiplication. */
	return mix(hash, 0);
}

INLINE int is_chosen(u64 flow) { return (flow >> 32) <= flows_limit; }

INLINE void set_ends(struct event *event, const struct ends *ends)
{
	event->local_port = ends->local_port;
	event->peer_port = ends->peer_port;
	event->flags |= (ends->is_udp ? FLAG_UDP : 0) | (ends->is_ipv6 ? FLAG_IPV6 : 0);
	event->peer[0] = ends->peer[0];
	event->peer[1] = ends->peer[1];
	event->peer[2] = ends->peer[2];
	event->peer[3] = ends->peer[3];
}

/* The headers of a packet for a server, from its network header on. */
struct headers {
	struct ends ends;
	u32 begin; /* TCP: the sequence number of the first byte */
	u32 bytes; /* of payload */
	u32 payload; /* where it begins, from the network header on */
	u8 flags;  /* of TCP */
};

struct ports_header {
	u16 source;
	u16 destination;
};

struct tcp_header {
	struct ports_header ports;
	u32 sequence;
	u32 acknowledged;
	u8 offset;
	u8 flags;
};

struct ipv4_header {
	u8 version_and_length;
	u8 service;
	u16 total;
	u16 id;
	u16 fragment;
	u8 lifetime;
	u8 protocol;
	u16 checksum;
	u32 source;
	u32 destination;
};

struct ipv6_header {
	u32 version;
	u16 payload;
	u8 next;
	u8 hops;
	u32 source[4];
	u32 destination[4];
};

/* Takes a TCP or UDP header, which is at a distance from the network header, with `bytes` up to the end of the packet. False if the port is not observed. */
INLINE int take_transport(const struct tcp_header *tcp, u32 at, u32 bytes, int for_server, struct headers *headers)
{
	struct ends *ends = &headers->ends;
	u32 header;
	ends->local_port = SWAP16(for_server ? tcp->ports.destination : tcp->ports.source);
	if (!is_observed(ends->local_port))
		return 0;
	ends->peer_port = SWAP16(for_server ? tcp->ports.source : tcp->ports.destination);
	header = ends->is_udp ? 8 : (tcp->offset >> 4) * 4;
	/* SYN has a number of its own, before those of the bytes that it carries. */
	headers->begin = SWAP32(tcp->sequence) + !!(tcp->flags & TCP_FLAG_SYN);
	headers->bytes = bytes > header ? bytes - header : 0;
	headers->payload = at + header;
	headers->flags = tcp->flags;
	return 1;
}

INLINE int set_protocol(struct ends *ends, u8 protocol)
{
	ends->is_udp = protocol == PROTOCOL_UDP;
	return protocol == PROTOCOL_TCP || protocol == PROTOCOL_UDP;
}

INLINE int read_ipv4(const unsigned char *at, u32 length, int for_server, struct headers *headers)
{
	/* What lies behind a short UDP header is read and not looked at. */
	struct {
		struct ipv4_header ip;
		struct tcp_header tcp;
	} both;
	u32 header, total;
	if (bpf_probe_read_kernel(&both, sizeof(both), at) || !set_protocol(&headers->ends, both.ip.protocol) ||
	    SWAP16(both.ip.fragment) & FRAGMENT_OFFSET)
		return 0;
	header = (both.ip.version_and_length & 15) * 4;
	if (header != sizeof(both.ip) && bpf_probe_read_kernel(&both.tcp, sizeof(both.tcp), at + header))
		return 0;
	/* Short frames are padded, and the total of a very large packet is 0. */
	total = SWAP16(both.ip.total) ? SWAP16(both.ip.total) : length;
	headers->ends.peer[0] = for_server ? both.ip.source : both.ip.destination;
	headers->ends.local[0] = for_server ? both.ip.destination : both.ip.source;
	return take_transport(&both.tcp, header, total - header, for_server, headers);
}

INLINE int read_ipv6(const unsigned char *at, u32 length, int for_server, struct headers *headers)
{
	struct {
		struct ipv6_header ip;
		struct tcp_header tcp;
	} both;
	struct ends *ends = &headers->ends;
	u32 payload;
	if (bpf_probe_read_kernel(&both, sizeof(both), at) || !set_protocol(ends, both.ip.next))
		return 0;
	ends->is_ipv6 = 1;
	payload = SWAP16(both.ip.payload) ? SWAP16(both.ip.payload) : length - sizeof(both.ip);
#pragma unroll
	for (int word = 0; word < 4; word++) {
		ends->peer[word] = for_server ? both.ip.source[word] : both.ip.destination[word];
		ends->local[word] = for_server ? both.ip.destination[word] : both.ip.source[word];
	}
	return take_transport(&both.tcp, sizeof(both.ip), payload, for_server, headers);
}

/* Reads the headers of a packet whose network header is at `at`. False if it is of no interest. */
INLINE int read_headers(const struct sk_buff *skb, const unsigned char *at, u32 length, int for_server,
			struct headers *headers)
{
	u16 protocol = SWAP16(skb->protocol);
	if (protocol == ETHERTYPE_IPV4)
		return read_ipv4(at, length, for_server, headers);
	if (protocol == ETHERTYPE_IPV6)
		return read_ipv6(at, length, for_server, headers);
	return 0;
}

/* The same for a packet that has just come in, whose data begins with the network header. */
INLINE int read_incoming(const struct sk_buff *skb, struct headers *headers)
{
	return read_headers(skb, skb->data, skb->len, 1, headers) && headers->bytes;
}

/* The first bytes of a datagram, as far as they can be read, of a packet whose network header is at `at`. */
INLINE u64 datagram_head(const struct sk_buff *skb, const unsigned char *at, const struct headers *headers)
{
	u64 head = 0;
	u32 before = (u32)(at - skb->data) + headers->payload;
	if (!with_bytes || !headers->ends.is_udp || headers->bytes < sizeof(head) ||
	    before + sizeof(head) > skb->len - skb->data_len)
		return 0;
	bpf_probe_read_kernel(&head, sizeof(head), at + headers->payload);
	return head;
}

#endif
