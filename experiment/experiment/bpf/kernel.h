/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The parts of the kernel's interface that sockets.bpf.c uses. Fields of kernel structures are relocated by name to their
 * places in the running kernel (CO-RE).
 */
#ifndef TAILWRIGHT_KERNEL_H
#define TAILWRIGHT_KERNEL_H

#include "bpf.h"

KERNEL_STRUCTURES_BEGIN

struct sock_common {
	u16 skc_num;
	volatile unsigned char skc_state;
};

KERNEL_STRUCTURES_END

struct bpf_iter_meta;

/* Context of the iterator over TCP sockets; its layout is part of the kernel's interface. */
struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

enum {
	SOL_TCP = 6,
	TCP_NODELAY = 1,
	TCP_CONGESTION = 13,
	TCP_TIME_WAIT = 6,
	TCP_LISTEN = 10,
	TCP_NEW_SYN_RECV = 12,
};

#endif
