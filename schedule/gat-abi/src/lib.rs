//! The functions of `include/tailwright_gat.h`, which documents them; `man/tailwright_gat.3` shows their
//! use.
//!
//! Pointers are trusted: one that is neither null nor valid is undefined behaviour, as usual in C. A null
//! pointer is an empty text, or means that the caller wants no answer.
#![warn(missing_docs)]
#![allow(unsafe_code, reason = "callers in C hand over pointers")]

use gat::{HeaderChange, ReceivedTag, RequestSlo, RequestTag, TagCodec, TagOrder, TagTolerance};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The version of the interface, `TAILWRIGHT_GAT_ABI` of the header.
pub const ABI: u32 = 1;

/// A request's start and deadline in nanoseconds since 1970; no deadline is zero. `struct tailwright_tag` in C.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbiTag {
    start_ns: u64,
    deadline_ns: u64,
}

/// The last stamped start. There are no locks here, which a fork could copy while they are held.
static LAST_START_NS: AtomicU64 = AtomicU64::new(0);

/// The SLO of requests without a deadline, nanoseconds, where deadlines order requests; 0 where starts do.
static DEFAULT_SLO_NS: AtomicU64 = AtomicU64::new(0);

/// Created at compile time, so that it outlives the destructors of a thread.
static CODEC: TagCodec = TagCodec::baggage();

thread_local! {
    static CURRENT: Cell<Option<AbiTag>> = const { Cell::new(None) };
}

impl From<RequestTag> for AbiTag {
    fn from(tag: RequestTag) -> Self {
        Self { start_ns: tag.start_ns, deadline_ns: tag.deadline_ns.unwrap_or(0) }
    }
}

impl From<AbiTag> for RequestTag {
    fn from(tag: AbiTag) -> Self {
        Self { start_ns: tag.start_ns, deadline_ns: Some(tag.deadline_ns).filter(|ns| *ns > 0) }
    }
}

/// Returns the version of this interface.
#[unsafe(no_mangle)]
pub extern "C" fn tailwright_gat_abi() -> u32 {
    ABI
}

/// Finds the tag in a header. Returns 1, 0 without one, or −1 if a member with our name is malformed.
///
/// # Safety
/// `baggage` has `length` bytes or is null; `tag` may be written or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tailwright_gat_read(baggage: *const u8, length: usize, tag: *mut AbiTag) -> i32 {
    // SAFETY: as the caller promises.
    match read(unsafe { text(baggage, length) }) {
        ReceivedTag::Untagged => 0,
        ReceivedTag::Malformed(_) => -1,
        ReceivedTag::Tagged(found) => {
            // SAFETY: as the caller promises.
            unsafe { put(found.into(), tag) };
            1
        }
    }
}

/// Writes the header with this tag, or without one if it is null, if it fits. Returns its whole length.
///
/// # Safety
/// `baggage` has `length` bytes or is null, `tag` is valid or null, and `room` bytes at `made` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tailwright_gat_write(
    baggage: *const u8,
    length: usize,
    tag: *const AbiTag,
    made: *mut u8,
    room: usize,
) -> usize {
    // SAFETY: as the caller promises.
    let (baggage, tag) = unsafe { (text(baggage, length), tag.as_ref()) };
    let value = match tag {
        Some(tag) => CODEC.write([baggage], (*tag).into()).value,
        None => stripped(baggage),
    };
    // SAFETY: as the caller promises.
    unsafe { put_text(&value, made, room) }
}

/// Writes the header without tags, if it fits. Returns its whole length.
///
/// # Safety
/// `baggage` has `length` bytes or is null, and `room` bytes at `made` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tailwright_gat_strip(
    baggage: *const u8,
    length: usize,
    made: *mut u8,
    room: usize,
) -> usize {
    // SAFETY: as the caller promises.
    let value = stripped(unsafe { text(baggage, length) });
    // SAFETY: as the caller promises.
    unsafe { put_text(&value, made, room) }
}

/// Stamps a request that enters now.
///
/// # Safety
/// `tag` may be written or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tailwright_gat_enter(tag: *mut AbiTag) {
    let now_ns = now_ns();
    let next = |last: u64| Some(last.saturating_add(1).max(now_ns));
    let last = LAST_START_NS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap_or_default();
    let entered = RequestTag::starting_at(last.saturating_add(1).max(now_ns));
    // SAFETY: as the caller promises.
    unsafe { put(entered.into(), tag) };
}

/// Determines the tag of a request that an inner service receives.
///
/// # Safety
/// `baggage` has `length` bytes or is null; `tag` may be written or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tailwright_gat_receive(baggage: *const u8, length: usize, tag: *mut AbiTag) {
    // SAFETY: as the caller promises.
    let received = read(unsafe { text(baggage, length) });
    let now_ns = now_ns();
    let accepted = match received {
        ReceivedTag::Tagged(tag) => TagTolerance::default().judge(tag, now_ns).0,
        ReceivedTag::Untagged | ReceivedTag::Malformed(_) => RequestTag::starting_at(now_ns),
    };
    // SAFETY: as the caller promises.
    unsafe { put(accepted.into(), tag) };
}

/// Sets the tag of the request that this thread works for.
///
/// # Safety
/// `tag` is valid or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tailwright_gat_set_current(tag: *const AbiTag) {
    // SAFETY: as the caller promises.
    let tag = unsafe { tag.as_ref() }.copied();
    CURRENT.set(tag);
    sched_hint::tag_current(tag.map_or(0, scheduling_key));
}

/// Makes the kernel's scheduler order the threads of this process by deadlines, or by starts for 0.
/// Returns 0, or −1 for an SLO out of its range.
#[unsafe(no_mangle)]
pub extern "C" fn tailwright_gat_order_by_deadline(default_slo_ns: u64) -> i32 {
    if default_slo_ns > 0 && RequestSlo::new(Duration::from_nanos(default_slo_ns)).is_err() {
        return -1;
    }
    DEFAULT_SLO_NS.store(default_slo_ns, Ordering::Relaxed);
    0
}

/// Returns the key by which the kernel's scheduler orders a request.
fn scheduling_key(tag: AbiTag) -> u64 {
    let default_slo = Duration::from_nanos(DEFAULT_SLO_NS.load(Ordering::Relaxed));
    let order = RequestSlo::new(default_slo)
        .map_or(TagOrder::Start, |default_slo| TagOrder::Deadline { default_slo });
    RequestTag::from(tag).key(order)
}

/// Returns 1 if a scheduler in the kernel reads the tags of this thread, otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn tailwright_gat_is_scheduled() -> i32 {
    i32::from(sched_hint::is_scheduled())
}

/// Returns 1 and the tag of the request that this thread works for, or 0 without one.
///
/// # Safety
/// `tag` may be written or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tailwright_gat_current(tag: *mut AbiTag) -> i32 {
    let Some(current) = CURRENT.get() else { return 0 };
    // SAFETY: as the caller promises.
    unsafe { put(current, tag) };
    1
}

fn read(baggage: &[u8]) -> ReceivedTag {
    CODEC.read([baggage])
}

fn stripped(baggage: &[u8]) -> Vec<u8> {
    match CODEC.strip([baggage]) {
        HeaderChange::Keep => baggage.to_vec(),
        HeaderChange::Remove => Vec::new(),
        HeaderChange::Replace(value) => value,
    }
}

fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// # Safety
/// `begin` has `length` bytes that do not change meanwhile, or is null.
unsafe fn text<'a>(begin: *const u8, length: usize) -> &'a [u8] {
    if begin.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(begin, length) }
}

/// # Safety
/// `place` may be written or is null.
unsafe fn put(tag: AbiTag, place: *mut AbiTag) {
    if !place.is_null() {
        // SAFETY: as the caller promises.
        unsafe { place.write(tag) };
    }
}

/// # Safety
/// `room` bytes at `place` may be written, and do not overlap with `value`.
unsafe fn put_text(value: &[u8], place: *mut u8, room: usize) -> usize {
    if !place.is_null() && value.len() <= room {
        // SAFETY: there is room, and the caller promises the rest.
        unsafe { place.copy_from_nonoverlapping(value.as_ptr(), value.len()) };
    }
    value.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_ordered_by_start_or_by_deadline() {
        let [with, without] =
            [AbiTag { start_ns: 5, deadline_ns: 9 }, AbiTag { start_ns: 5, deadline_ns: 0 }];
        assert_eq!([with, without].map(scheduling_key), [5, 5]);
        assert_eq!(tailwright_gat_order_by_deadline(100), 0);
        assert_eq!([with, without].map(scheduling_key), [9, 105]);
        assert_eq!(tailwright_gat_order_by_deadline(86_400_000_000_001), -1);
        assert_eq!([with, without].map(scheduling_key), [9, 105]);
        assert_eq!(tailwright_gat_order_by_deadline(0), 0);
        assert_eq!([with, without].map(scheduling_key), [5, 5]);
    }
}
