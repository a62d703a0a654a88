//! Until the next request is due or something comes: a timer that is set to end shortly before, then looking without
//! waiting.

use super::Clock;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use units::Nanos;

/// A sleep ends so long before the instant: what a wake-up takes, seldom more under real-time priority.
const SPIN: Nanos = Nanos(60_000);
/// Longest sleep, so that a run can be stopped.
const NAP: Nanos = Nanos(50_000_000);
const EVENTS: usize = 64;

pub(crate) struct Waiter {
    epoll: OwnedFd,
    timer: OwnedFd,
    bell: Arc<OwnedFd>,
    /// What the timer is set to.
    set: Nanos,
    events: Vec<Event>,
}

impl Waiter {
    pub(crate) const TIMER: u64 = u64::MAX;
    pub(crate) const BELL: u64 = u64::MAX - 1;

    pub(crate) fn new(bell: Arc<OwnedFd>) -> rustix::io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &timer, EventData::new_u64(Self::TIMER), EventFlags::IN)?;
        epoll::add(&epoll, &bell, EventData::new_u64(Self::BELL), EventFlags::IN)?;
        Ok(Self { epoll, timer, bell, set: Nanos::ZERO, events: Vec::with_capacity(EVENTS) })
    }

    pub(crate) fn watch(&self, stream: &TcpStream, link: usize) -> rustix::io::Result<()> {
        epoll::add(&self.epoll, stream, EventData::new_u64(link as u64), EventFlags::IN)
    }

    /// Whether it is to be said when the socket takes more.
    pub(crate) fn room(&self, stream: &TcpStream, link: usize, wanted: bool) -> rustix::io::Result<()> {
        let flags = if wanted { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
        epoll::modify(&self.epoll, stream, EventData::new_u64(link as u64), flags)
    }

    /// The bell was heard.
    pub(crate) fn silence(&self) -> rustix::io::Result<()> {
        match rustix::io::read(&self.bell, &mut [0; 8]) {
            Ok(_) | Err(Errno::AGAIN) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// What came; nothing if it is time for what is due at `until`, or for looking around. To be given back.
    pub(crate) fn wait(&mut self, clock: Clock, until: Nanos) -> rustix::io::Result<Vec<Event>> {
        let now = clock.now();
        let wake = until.saturating_sub(SPIN).min(now + NAP);
        let mut events = std::mem::take(&mut self.events);
        let spins = wake <= now;
        if !spins && !(self.set > now && self.set <= wake) {
            self.set(clock, wake)?;
        }
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let room = rustix::buffer::spare_capacity(&mut events);
        match epoll::wait(&self.epoll, room, spins.then_some(&zero)) {
            Ok(_) | Err(Errno::INTR) => Ok(events),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn give_back(&mut self, events: Vec<Event>) {
        self.events = events;
    }

    fn set(&mut self, clock: Clock, wake: Nanos) -> rustix::io::Result<()> {
        let at = clock.origin + wake.0;
        let part = |value: u64| i64::try_from(value).expect("less than 292 years");
        let value = Timespec { tv_sec: part(at / 1_000_000_000), tv_nsec: part(at % 1_000_000_000) };
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let setting = Itimerspec { it_interval: never, it_value: value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &setting)?;
        self.set = wake;
        Ok(())
    }
}
