//! The functions of `include/tailwright_schedule.h`, which documents them.
//!
//! Pointers are trusted: one that is neither null nor valid is undefined behaviour, as usual in C. A
//! panic aborts the process, because C cannot unwind.
#![warn(missing_docs)]
#![allow(unsafe_code, reason = "callers in C hand over pointers")]

use schedule::{ConcurrencyLimit, Gate, GatePreemption, GateSettings, Permit, PoolOrder, RequestKey};
use std::cell::Cell;
use std::num::NonZeroU32;
use std::panic::catch_unwind;
use std::thread::{self, ThreadId};
use std::time::Duration;

/// The version of the interface, `TAILWRIGHT_SCHEDULE_ABI` of the header.
pub const ABI: u32 = 1;

const BY_ARRIVAL: u32 = 1;
const ADMISSION_ONLY: u32 = 2;

thread_local! {
    /// The calling thread, once it has entered a gate: in a destructor the standard library may no longer
    /// know it.
    static ENTERED: Cell<Option<ThreadId>> = const { Cell::new(None) };
}

/// Settings of a gate; `struct tailwright_gate_settings` in C.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbiGateSettings {
    limit: u32,
    workers: u32,
    flags: u32,
    patience_ns: u64,
    sentinel_ns: u64,
}

/// A permit and the thread that took it; `tailwright_permit` in C.
#[derive(Debug)]
pub struct AbiPermit {
    permit: Permit,
    thread: ThreadId,
}

impl AbiGateSettings {
    /// Converts the settings; `None` for unknown flags.
    fn settings(self) -> Option<GateSettings> {
        let defaults = GateSettings::default();
        if self.flags & !(BY_ARRIVAL | ADMISSION_ONLY) != 0 {
            return None;
        }
        let limit = match NonZeroU32::new(self.limit) {
            None => ConcurrencyLimit::Unlimited,
            Some(NonZeroU32::MAX) => ConcurrencyLimit::Auto,
            Some(limit) => ConcurrencyLimit::Fixed(limit),
        };
        let by_arrival = self.flags & BY_ARRIVAL != 0;
        let admits = self.flags & ADMISSION_ONLY != 0;
        Some(GateSettings {
            limit,
            order: if by_arrival { PoolOrder::Arrival } else { PoolOrder::Age },
            preemption: if admits { GatePreemption::Never } else { GatePreemption::WhereProven },
            workers: NonZeroU32::new(self.workers).unwrap_or(defaults.workers),
            patience: duration(self.patience_ns),
            sentinel: duration(self.sentinel_ns),
        })
    }
}

fn duration(ns: u64) -> Option<Duration> {
    (ns > 0).then(|| Duration::from_nanos(ns))
}

/// Returns the version of this interface.
#[unsafe(no_mangle)]
pub extern "C" fn tailwright_schedule_abi() -> u32 {
    ABI
}

/// Creates a gate; null for unknown flags.
///
/// # Safety
/// `settings` is valid or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tailwright_gate_new(settings: *const AbiGateSettings) -> *mut Gate {
    // SAFETY: as the caller promises.
    let settings = match unsafe { settings.as_ref() } {
        None => Some(GateSettings::default()),
        Some(settings) => settings.settings(),
    };
    settings.map_or(std::ptr::null_mut(), |settings| Box::into_raw(Box::new(Gate::new(settings))))
}

/// Releases a gate.
///
/// # Safety
/// `gate` is from [`tailwright_gate_new`] and is not used any more, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tailwright_gate_free(gate: *mut Gate) {
    if !gate.is_null() {
        // SAFETY: as the caller promises.
        drop(unsafe { Box::from_raw(gate) });
    }
}

/// Waits until a request may run; null if it may not in time.
///
/// # Safety
/// `gate` is from [`tailwright_gate_new`], or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tailwright_gate_enter(
    gate: *const Gate,
    key: u64,
    timeout_ns: u64,
) -> *mut AbiPermit {
    // SAFETY: as the caller promises.
    let Some(gate) = (unsafe { gate.as_ref() }) else { return std::ptr::null_mut() };
    let Some(thread) = entering_thread() else { return std::ptr::null_mut() };
    // Another thread may release the gate while this one waits.
    let entered = gate.clone().enter_unless(RequestKey(key), duration(timeout_ns), None);
    entered.map_or(std::ptr::null_mut(), |permit| Box::into_raw(Box::new(AbiPermit { permit, thread })))
}

/// Notes that a request waits for something other than a CPU.
///
/// # Safety
/// `permit` is from [`tailwright_gate_enter`] and has not left, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tailwright_permit_block_begin(permit: *const AbiPermit) -> i32 {
    // SAFETY: as the caller promises.
    unsafe { own(permit) }.map_or(-1, |own| {
        own.permit.block_begin();
        0
    })
}

/// Waits until a request that waited may continue.
///
/// # Safety
/// As for [`tailwright_permit_block_begin`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tailwright_permit_block_end(permit: *const AbiPermit) -> i32 {
    // SAFETY: as the caller promises.
    let own = unsafe { own(permit) };
    own.filter(|_| entering_thread().is_some()).map_or(-1, |own| {
        own.permit.block_end();
        0
    })
}

/// Makes a request leave its gate.
///
/// # Safety
/// As for [`tailwright_permit_block_begin`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tailwright_permit_leave(permit: *mut AbiPermit) -> i32 {
    // SAFETY: as the caller promises.
    if unsafe { own(permit) }.is_none() {
        return -1;
    }
    // SAFETY: it came from a box, and the caller does not use it any more.
    drop(unsafe { Box::from_raw(permit) });
    0
}

/// Writes the report of a gate's modes, if it fits. Returns its whole length.
///
/// # Safety
/// `gate` is from [`tailwright_gate_new`], or null; `room` bytes at `text` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tailwright_gate_report(gate: *const Gate, text: *mut u8, room: usize) -> usize {
    // SAFETY: as the caller promises.
    let Some(gate) = (unsafe { gate.as_ref() }) else { return 0 };
    let report = gate.admission_report().to_string();
    if report.len() <= room && !text.is_null() {
        // SAFETY: as the caller promises; a text that was just made does not overlap.
        unsafe { std::ptr::copy_nonoverlapping(report.as_ptr(), text, report.len()) };
    }
    report.len()
}

/// Returns a permit, if it belongs to the calling thread.
///
/// # Safety
/// `permit` is valid or null. Of another thread's permit only the thread is read.
unsafe fn own<'a>(permit: *const AbiPermit) -> Option<&'a AbiPermit> {
    // SAFETY: as the caller promises.
    let permit = unsafe { permit.as_ref() }?;
    (Some(permit.thread) == ENTERED.get()).then_some(permit)
}

/// Returns the calling thread. `None` in a destructor that runs after the standard library's data of the
/// thread are gone, because then no thread could wake it. The only way to find out is a panic, which
/// prints a message on standard error.
fn entering_thread() -> Option<ThreadId> {
    let thread = catch_unwind(|| thread::current().id()).ok()?;
    ENTERED.set(Some(thread));
    Some(thread)
}
