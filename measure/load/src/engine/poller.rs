//! Waits until the next request is due or a socket has news: the thread sleeps on a timer that ends shortly before the
//! request is due, and polls without waiting for the rest of the time.
//!
//! Waking up takes tens of microseconds, which would add to every latency. Polling from [`SPIN`] before the due time hides
//! it, at the price of a busy CPU.

use super::clock::RunClock;
use crate::setup::ConnectionSocket;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use units::Nanos;

/// Time between the end of a sleep and the due time. A wake-up seldom takes longer under real-time
/// priority.
const SPIN: Nanos = Nanos(60_000);
/// The longest sleep, so that a run notices soon that it is to stop.
const SLEEP_MAX: Nanos = Nanos(50_000_000);
const EVENTS_MAX: usize = 64;

/// The connections, the timer and the waker of a run, behind one epoll instance. The data of an event is the position of
/// a connection, or one of the two largest values.
pub(super) struct Poller {
    epoll: OwnedFd,
    timer: OwnedFd,
    waker: Arc<OwnedFd>,
    /// The instant that the timer is set to.
    timer_end: Nanos,
    /// The memory of events, kept to reuse it.
    events: Vec<Event>,
}

impl Poller {
    /// The event data of the timer. Its events only end a sleep.
    pub(super) const TIMER: u64 = u64::MAX;
    /// The event data of the waker.
    pub(super) const WAKER: u64 = u64::MAX - 1;

    pub(super) fn new(waker: Arc<OwnedFd>) -> rustix::io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &timer, EventData::new_u64(Self::TIMER), EventFlags::IN)?;
        epoll::add(&epoll, &waker, EventData::new_u64(Self::WAKER), EventFlags::IN)?;
        let events = Vec::with_capacity(EVENTS_MAX);
        Ok(Self { epoll, timer, waker, timer_end: Nanos::ZERO, events })
    }

    /// Starts to watch a connection for input. Closing the socket ends that.
    pub(super) fn register(&self, socket: &ConnectionSocket, slot: usize) -> rustix::io::Result<()> {
        epoll::add(&self.epoll, socket, EventData::new_u64(slot as u64), EventFlags::IN)
    }

    /// Sets or clears the watch for room to write on a connection.
    pub(super) fn watch_writable(
        &self,
        socket: &ConnectionSocket,
        slot: usize,
        wanted: bool,
    ) -> rustix::io::Result<()> {
        let flags = if wanted { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
        epoll::modify(&self.epoll, socket, EventData::new_u64(slot as u64), flags)
    }

    /// Resets the waker. The caller takes the announced connections afterwards, so that none is missed in
    /// between.
    pub(super) fn reset_waker(&self) -> rustix::io::Result<()> {
        match rustix::io::read(&self.waker, &mut [0; 8]) {
            Ok(_) | Err(Errno::AGAIN) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Waits for events until shortly before `due`, at most for [`SLEEP_MAX`]; from then on, polls once without waiting.
    /// Returns the events, often none, in a vector for [`Self::recycle`].
    pub(super) fn wait(&mut self, clock: RunClock, due: Nanos) -> rustix::io::Result<Vec<Event>> {
        let now = clock.now();
        let wake = due.saturating_sub(SPIN).min(now + SLEEP_MAX);
        let spins = wake <= now;
        // An earlier end of the timer is kept: an early wake-up is cheaper than a system call for
        // every wait.
        let is_set = now < self.timer_end && self.timer_end <= wake;
        if !spins && !is_set {
            self.set_timer(clock, wake)?;
        }
        let mut events = std::mem::take(&mut self.events);
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let room = rustix::buffer::spare_capacity(&mut events);
        match epoll::wait(&self.epoll, room, spins.then_some(&zero)) {
            Ok(_) | Err(Errno::INTR) => Ok(events),
            Err(error) => Err(error),
        }
    }

    /// Takes back the memory of events, which must be empty.
    pub(super) fn recycle(&mut self, events: Vec<Event>) {
        self.events = events;
    }

    fn set_timer(&mut self, clock: RunClock, end: Nanos) -> rustix::io::Result<()> {
        let setting = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: timespec(clock.to_monotonic(end)),
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &setting)?;
        self.timer_end = end;
        Ok(())
    }
}

fn timespec(nanos: u64) -> Timespec {
    let seconds = i64::try_from(nanos / 1_000_000_000).expect("less than 292 years");
    let rest = i64::try_from(nanos % 1_000_000_000).expect("less than a second");
    Timespec { tv_sec: seconds, tv_nsec: rest }
}
