// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/* The scheduler of oldest_first.bpf.c for the threads of one control group, under a scheduler of the whole machine. */
#define IN_HIERARCHY
#include "oldest_first.bpf.c"
