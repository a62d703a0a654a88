//! Loads, attaches and reads the BPF programs of `bpf/sockets.bpf.c`.

use crate::open_sockets::SocketOption;
use aya::maps::{Array, MapData};
use aya::programs::links::FdLink;
use aya::programs::{Iter, Program, ProgramError};
use aya::{Btf, Ebpf};
use model::OperationError;
use observe::refused;
use std::fs::File;
use std::io::{self, Read as _};

/// `bpf/sockets.bpf.c`, compiled by `base/machine/bpf/build.sh`.
pub(super) static OBJECT: &[u8] = aya::include_bytes_aligned!("../../../bpf/sockets.bpf.o");

pub(super) fn iterator(object: &mut Ebpf) -> &mut Iter {
    let program = object.program_mut("tw_pass").expect("the compiled object has all programs");
    program.try_into().expect("it is an iterator")
}

/// Attaches the programs that record the server's own calls, if the kernel supports them
/// (CONFIG_FUNCTION_TRACER).
pub(super) fn attach_watchers(
    object: &mut Ebpf,
    option: SocketOption,
    btf: &Btf,
) -> Result<Vec<FdLink>, ProgramError> {
    let programs: &[(&str, &str)] = match option {
        SocketOption::NoDelay => {
            &[("tw_setting_no_delay", "tcp_setsockopt"), ("tw_no_delay_set", "tcp_setsockopt")]
        }
        SocketOption::CongestionControl => &[("tw_congestion_control_set", "tcp_set_congestion_control")],
    };
    let mut links = Vec::new();
    for (name, function) in programs {
        let program = object.program_mut(name).expect("the compiled object has all programs");
        links.push(attached(program, function, btf)?);
    }
    Ok(links)
}

fn attached(program: &mut Program, function: &str, btf: &Btf) -> Result<FdLink, ProgramError> {
    match program {
        Program::FEntry(program) => {
            program.load(function, btf)?;
            let link = program.attach()?;
            program.take_link(link).map(FdLink::from)
        }
        Program::FExit(program) => {
            program.load(function, btf)?;
            let link = program.attach()?;
            program.take_link(link).map(FdLink::from)
        }
        _ => unreachable!("the compiled object has no others"),
    }
}

pub(super) fn take<V: aya::Pod>(object: &mut Ebpf, name: &str) -> Result<Array<MapData, V>, OperationError> {
    let map = object.take_map(name).expect("the compiled object has all maps");
    Array::try_from(map).map_err(|error| unloadable(&error))
}

pub(super) fn unloadable(error: &dyn std::error::Error) -> OperationError {
    refused("the kernel does not let options of open sockets be set", error)
        .hint("it takes Linux 6.1 or newer, with CONFIG_DEBUG_INFO_BTF")
}

/// Reads an iterator to its end, which runs its program for every socket. The program writes nothing.
pub(super) fn read_to_end(mut file: File) -> io::Result<()> {
    let mut nothing = [0; 64];
    loop {
        match file.read(&mut nothing) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            // After a million sockets, seq_file returns EAGAIN and must be read again.
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
}
