//! The programs of `bpf/observe.bpf.c` in the kernel, for as long as a value lives.
//!
//! Programs are attached by file descriptors alone, so the kernel takes them away when the process ends, however it
//! ends.

use super::loading::{attach, attach_if_there, lacks, refused, skipped_runs, take, types_of_kernel};
use super::rights::may_measure_cost;
use crate::event::KernelEvent;
use aya::maps::{Array, MapData, RingBuf};
use aya::{Btf, Ebpf, EbpfLoader};
use model::OperationError;
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use wire::Protocol;

/// `bpf/observe.bpf.c`, compiled by `base/machine/bpf/build.sh`. A static of its own type gives it the alignment of an ELF file.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../../bpf/observe.bpf.o");

/// The programs with the tracepoints that they are attached to, and whether observing is pointless without them.
const PROGRAMS: [(&str, &str, bool); 21] = [
    ("tw_netif_rx", "netif_rx", false),
    ("tw_gro_receive", "napi_gro_receive_entry", false),
    ("tw_arrival", "netif_receive_skb", true),
    ("tw_ready", "sk_data_ready", true),
    ("tw_switch", "sched_switch", true),
    ("tw_waking", "sched_waking", true),
    ("tw_wakeup", "sched_wakeup", true),
    ("tw_migrate", "sched_migrate_task", true),
    ("tw_softirq_entry", "softirq_entry", false),
    ("tw_softirq_exit", "softirq_exit", false),
    ("tw_interrupt_entry", "irq_handler_entry", false),
    ("tw_interrupt_exit", "irq_handler_exit", false),
    ("tw_receive", "sock_recv_length", true),
    ("tw_taken", "tcp_rcv_space_adjust", false),
    ("tw_send", "tcp_sendmsg_locked", true),
    ("tw_sent", "sock_send_length", false),
    ("tw_route", "fib_table_lookup", false),
    ("tw_route6", "fib6_table_lookup", false),
    ("tw_transmit", "net_dev_start_xmit", true),
    ("tw_state", "inet_sock_set_state", true),
    ("tw_retransmit", "tcp_retransmit_skb", false),
];

/// Tracepoints that older kernels lack, with the programs that take the place of theirs and the functions that these are
/// attached to; the first one is needed. There, a function of the kernel is called once where the tracepoint may be passed
/// several times.
const SUBSTITUTES: [(&str, &[(&str, &str)]); 3] = [
    ("sk_data_ready", &[("tw_ready_before_6_3", "sock_def_readable")]),
    (
        "sock_recv_length",
        &[("tw_receive_before_6_3", "inet_recvmsg"), ("tw_receive6_before_6_3", "inet6_recvmsg")],
    ),
    ("tcp_sendmsg_locked", &[("tw_send_before_6_16", "tcp_sendmsg_locked")]),
];

/// The program that says when connections are accepted. It runs at every system call of the machine.
const ACCEPT_PROGRAM: (&str, &str) = ("tw_accepted", "sys_exit");

/// The most events that are taken at once.
const DRAINED_MAX: usize = 1 << 18;

/// Which ports and connections are observed, and with how much room.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeSettings {
    /// The ports of the servers.
    pub ports: BTreeSet<u16>,
    /// The share of TCP connections that is observed, above 0 and up to 1. All of UDP is.
    pub share: f64,
    /// Room for events that were not drained yet, in bytes: a power of two of at least 4096.
    pub ring_bytes: u32,
    /// What is spoken on these ports: then the first bytes of reads and writes are looked at, and kept nowhere.
    pub protocol: Option<Protocol>,
    /// Whether to see when connections are accepted, which costs a little at every system call of the machine.
    pub accepts: bool,
}

impl ProbeSettings {
    /// All connections of these ports, of whatever protocol, with 8 MiB of room.
    pub fn of_ports(ports: impl IntoIterator<Item = u16>) -> Self {
        let ports = ports.into_iter().collect();
        Self { ports, share: 1.0, ring_bytes: 1 << 23, protocol: None, accepts: false }
    }
}

/// What the programs have cost while the kernel measured them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProbeCost {
    /// CPU time in nanoseconds, over all CPUs.
    pub run_ns: u64,
    /// How often a program ran.
    pub runs: u64,
}

/// The programs, attached until the value is dropped.
pub struct AttachedProbes {
    object: Ebpf,
    events: RingBuf<MapData>,
    counts: Array<MapData, u64>,
    /// The kernel measures run times while this is open.
    measuring: Option<OwnedFd>,
}

impl AttachedProbes {
    /// Loads and attaches the programs.
    ///
    /// # Errors
    /// When capabilities are missing, or the kernel is too old; the message names which.
    ///
    /// # Panics
    /// When no port or no share of connections is to be observed.
    pub fn attach(settings: &ProbeSettings) -> Result<Self, OperationError> {
        Self::attach_knowing(settings, &types_of_kernel()?)
    }

    /// As [`AttachedProbes::attach`], for who attaches again and again: to read the kernel's types takes long.
    ///
    /// # Errors
    /// When the kernel is too old; the message names what is missing.
    pub(crate) fn attach_knowing(settings: &ProbeSettings, btf: &Btf) -> Result<Self, OperationError> {
        assert!(!settings.ports.is_empty() && settings.share > 0.0, "something is observed");
        let mut object = load(settings, btf)?;
        for (name, tracepoint, needed) in PROGRAMS {
            if attach_if_there(&mut object, name, tracepoint, btf)? || !needed {
                continue;
            }
            let (_, programs) = SUBSTITUTES
                .iter()
                .find(|(lacking, _)| *lacking == tracepoint)
                .ok_or_else(|| lacks(tracepoint))?;
            for (index, (name, function)) in programs.iter().enumerate() {
                if !attach_if_there(&mut object, name, function, btf)? && index == 0 {
                    return Err(lacks(function));
                }
            }
        }
        if settings.accepts {
            let (name, tracepoint) = ACCEPT_PROGRAM;
            attach(&mut object, name, tracepoint, btf)?;
        }
        let events = take(&mut object, "events", RingBuf::try_from)?;
        let counts = take(&mut object, "counts", Array::try_from)?;
        Ok(Self { object, events, counts, measuring: None })
    }

    /// Takes events that have come since the last call, with the bytes behind them, oldest first on each CPU; returns how
    /// many. Some are left for
    /// the next call where they come faster than they are taken.
    ///
    /// # Panics
    /// When the programs and this crate do not agree on the form of events.
    pub fn drain(&mut self, mut take: impl FnMut(KernelEvent, &[u8])) -> usize {
        let mut count = 0;
        while count < DRAINED_MAX
            && let Some(bytes) = self.events.next()
        {
            let decoded = KernelEvent::decode(&bytes);
            let (event, copied) = decoded.expect("the programs and their reader are built together");
            take(event, copied);
            count += 1;
        }
        count
    }

    /// The number of events that found no room until now.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn lost(&self) -> Result<u64, OperationError> {
        self.counts.get(&0, 0).map_err(|error| refused("the count of lost events cannot be read", &error))
    }

    /// The number of TCP segments of observed connections that the server's side has sent again until now.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub(crate) fn retransmits(&self) -> Result<u64, OperationError> {
        self.counts.get(&1, 0).map_err(|error| refused("the count of retransmits cannot be read", &error))
    }

    /// How often the kernel passed over a program until now, because it ran on the same CPU for a thread that was
    /// interrupted in the middle of it: what that run might have reported is missing. 0 before Linux 5.12, which does not
    /// tell.
    pub fn skipped_runs(&self) -> u64 {
        skipped_runs(&self.object)
    }

    /// Begins to measure the run time of programs, which makes each a little slower. False without the right to.
    pub(crate) fn begin_measuring_cost(&mut self) -> bool {
        self.measuring =
            if may_measure_cost() { aya::sys::enable_stats(aya::sys::Stats::RunTime).ok() } else { None };
        self.measuring.is_some()
    }

    /// Ends the measurement of run times.
    pub(crate) fn end_measuring_cost(&mut self) {
        self.measuring = None;
    }

    /// What was measured until now.
    pub fn cost(&self) -> ProbeCost {
        let infos = self.object.programs().filter_map(|(_, program)| program.info().ok());
        infos.fold(ProbeCost::default(), |sum, info| ProbeCost {
            run_ns: sum.run_ns
                + u64::try_from(info.run_time().as_nanos()).expect("programs run for less than centuries"),
            runs: sum.runs + info.run_count(),
        })
    }
}

/// Returns the most bytes of a buffer that are copied while there is room.
fn buffer_bytes_max(protocol: Protocol) -> u32 {
    // Where commands are batched, heads stand behind values; elsewhere heads begin buffers.
    if protocol.row().is_batched { 64 << 10 } else { 4 << 10 }
}

fn load(settings: &ProbeSettings, btf: &Btf) -> Result<Ebpf, OperationError> {
    let ports = port_bits(&settings.ports);
    let flows_limit = flows_limit(settings.share);
    let with_bytes = u8::from(settings.protocol.is_some());
    let buffer_bytes_max = settings.protocol.map_or(0, buffer_bytes_max);
    EbpfLoader::new()
        .btf(Some(btf))
        .override_global("ports", ports.as_slice(), true)
        .override_global("flows_limit", &flows_limit, true)
        .override_global("with_bytes", &with_bytes, true)
        .override_global("buffer_bytes_max", &buffer_bytes_max, true)
        .map_max_entries("events", settings.ring_bytes)
        .load(OBJECT)
        .map_err(|error| refused("the observing programs cannot be loaded", &error))
}

/// The largest hash of a connection that is observed; a share of 1 takes all.
#[allow(clippy::cast_possible_truncation, reason = "shares are at most 1, and casts of floats saturate")]
fn flows_limit(share: f64) -> u32 {
    (share * f64::from(u32::MAX)) as u32
}

/// A bit for each port.
fn port_bits(ports: &BTreeSet<u16>) -> Vec<u8> {
    let mut bits = vec![0; 1 << 13];
    ports.iter().for_each(|port| bits[usize::from(port >> 3)] |= 1 << (port & 7));
    bits
}
