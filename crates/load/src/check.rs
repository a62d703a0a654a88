//! Workloads that cannot be, before and after their servers were asked.

use crate::setup::Space;
use crate::{Demand, Options, Target, Workload};
use model::{Op, OperationError};
use std::collections::BTreeSet;

/// Most data of one NFS call that servers take by default.
const NFS_MAX: u64 = 1 << 20;
/// Most data of one NBD command that servers have to take.
const NBD_MAX: u64 = 32 << 20;
/// Anything else.
const MAX: u64 = 1 << 30;

/// What stands on its own: names, connections, sizes.
pub(crate) fn alone(workloads: &[Workload], options: &Options) -> Result<(), OperationError> {
    if u32::try_from(workloads.len()).is_err() {
        return Err(OperationError::input("too many workloads").hint("split them"));
    }
    let mut names = BTreeSet::new();
    for workload in workloads {
        if workload.name.is_empty() || !names.insert(&workload.name) {
            let message = format!("the name '{}': expected one of its own for each workload", workload.name);
            return Err(
                OperationError::input(message).hint("give every [[workload]] a name that no other has")
            );
        }
        one(workload, options).map_err(|fault| fault.about(format_args!("workload {}", workload.name)))?;
    }
    match options.realtime {
        Some(priority) if !(1..=99).contains(&priority) => {
            Err(OperationError::input(format_args!("real-time priority {priority}")).hint("expected 1 to 99"))
        }
        _ => Ok(()),
    }
}

fn one(workload: &Workload, options: &Options) -> Result<(), OperationError> {
    if workload.connections == 0 {
        return Err(OperationError::input("0 connections").hint("expected at least 1"));
    }
    let (least, most, why) = match workload.target {
        Target::Nfs { .. } => (1, NFS_MAX, "split them: one NFS call takes no more"),
        Target::Nbd { .. } => (1, NBD_MAX, "split them: one NBD command takes no more"),
        Target::Memcached { .. } | Target::Http { .. } => (0, MAX, "split them"),
    };
    for (_, size) in sizes(&workload.demand) {
        if !(least..=most).contains(&size) {
            return Err(OperationError::input(format_args!(
                "a request of {size} bytes, where {least} to {most} are possible"
            ))
            .hint(why));
        }
    }
    match &workload.target {
        Target::Memcached { keys: 0, .. } => Err(OperationError::input("0 keys").hint("expected at least 1")),
        Target::Http { .. } if options.verify_data => {
            Err(OperationError::input("HTTP answers cannot be verified: the server decides what they are")
                .hint("leave data verification out, or this workload"))
        }
        _ => Ok(()),
    }
}

/// What the server has to be able to do.
pub(crate) fn fits(workload: &Workload, space: &Space) -> Result<(), OperationError> {
    let Space::Bytes { len, block, is_writable, .. } = *space else { return Ok(()) };
    for (op, size) in sizes(&workload.demand) {
        let (message, hint) = if op == Op::Write && !is_writable {
            (
                "writes to a read-only export".to_owned(),
                "export it writable, or ask for reads only".to_owned(),
            )
        } else if size > len {
            (format!("a request of {size} bytes to {len} bytes"), "use a larger file or export".to_owned())
        } else if size % block != 0 {
            let hint = "choose sizes that are".to_owned();
            (
                format!("a request of {size} bytes, which is no multiple of the server's block of {block}"),
                hint,
            )
        } else {
            continue;
        };
        return Err(OperationError::input(message)
            .hint(hint)
            .about(format_args!("workload {}", workload.name)));
    }
    Ok(())
}

/// The distinct sizes that are read and written.
pub(crate) fn sizes(demand: &Demand) -> BTreeSet<(Op, u64)> {
    match demand {
        Demand::Open(requests) => requests.iter().map(|request| (request.op, request.size.0)).collect(),
        Demand::Closed { op, size, .. } => [(*op, size.0)].into(),
    }
}

/// A size that [`alone`] let pass.
pub(crate) fn small(size: u64) -> u32 {
    u32::try_from(size).expect("sizes are checked before")
}
