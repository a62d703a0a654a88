//! The loops of the program: threads, each with an `epoll` of its own.

use super::super::control::CommandWaker;
use super::super::linux::{LinuxStream, LinuxSystem};
use super::super::system::{System, SystemEvent};
use super::byte_loop::ByteLoop;
use super::conduit::{ByteOrder, ByteReport, ConnectionId};
use super::looped_system::ByteLoops;
use super::mailbox::{MailReceiver, MailSender, Wake, mailbox};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Orders of a round, for one loop.
type Orders = Vec<(ConnectionId, ByteOrder<LinuxStream>)>;
/// Reports of a round of one loop, with its index.
type Reports = (usize, Vec<(ConnectionId, ByteReport)>);

/// Threads that move the bytes of an engine's connections. They begin with the engine, so that they inherit its
/// priority.
#[derive(Debug)]
pub(in super::super) struct LoopThreads {
    prepared: Vec<PreparedLoop>,
    orders: Vec<MailSender<Orders, CommandWaker>>,
    reports: MailReceiver<Reports>,
    threads: Vec<JoinHandle<()>>,
    has_one_ended: Arc<AtomicBool>,
}

/// A loop whose thread has not begun.
#[derive(Debug)]
struct PreparedLoop {
    index: usize,
    system: LinuxSystem,
    orders: MailReceiver<Orders>,
    reports: MailSender<Reports, CommandWaker>,
    notice: EndNotice,
}

/// Tells the engine that a loop has ended, by an error or a panic.
#[derive(Debug)]
struct EndNotice {
    has_one_ended: Arc<AtomicBool>,
    engine: CommandWaker,
}

impl Drop for EndNotice {
    fn drop(&mut self) {
        self.has_one_ended.store(true, Ordering::Release);
        self.engine.wake();
    }
}

impl Wake for CommandWaker {
    fn wake(&self) {
        self.notify();
    }
}

impl LoopThreads {
    /// Prepares `count` loops that wake an engine by `engine`.
    ///
    /// # Errors
    /// When the process may open no more files.
    pub(in super::super) fn prepare(
        count: usize,
        engine: &CommandWaker,
        busy_poll_max_ns: u64,
    ) -> io::Result<Self> {
        let (report_sender, reports) = mailbox(engine.clone());
        let has_one_ended = Arc::new(AtomicBool::new(false));
        let mut loops =
            Self { prepared: Vec::new(), orders: Vec::new(), reports, threads: Vec::new(), has_one_ended };
        for index in 0..count {
            let waker = CommandWaker::new()?;
            let system = LinuxSystem::new(Vec::new(), waker.clone(), busy_poll_max_ns)?;
            let (order_sender, orders) = mailbox(waker);
            let notice = EndNotice { has_one_ended: loops.has_one_ended.clone(), engine: engine.clone() };
            let reports = report_sender.clone();
            loops.prepared.push(PreparedLoop { index, system, orders, reports, notice });
            loops.orders.push(order_sender);
        }
        Ok(loops)
    }

    /// Begins the threads of prepared loops.
    ///
    /// # Errors
    /// When the process may start no more threads.
    fn begin(&mut self) -> io::Result<()> {
        for prepared in self.prepared.drain(..) {
            let builder = thread::Builder::new().name(format!("bytes-{}", prepared.index));
            self.threads.push(builder.spawn(move || {
                let PreparedLoop { index, system, orders, reports, notice: _notice } = prepared;
                if let Err(error) = run(index, system, orders, &reports) {
                    eprintln!("proxy: loop {index}: epoll: {error}");
                }
            })?);
        }
        Ok(())
    }
}

impl Drop for LoopThreads {
    /// Waits until the loops have written the last bytes and closed all connections.
    fn drop(&mut self) {
        self.orders.clear();
        for thread in self.threads.drain(..) {
            // A panic of the loop was reported by its thread.
            let _ = thread.join();
        }
    }
}

/// Runs a loop until the engine is gone and its connections are closed.
///
/// # Errors
/// If the kernel cannot deliver events.
fn run(
    index: usize,
    mut system: LinuxSystem,
    mut orders: MailReceiver<Orders>,
    reports: &MailSender<Reports, CommandWaker>,
) -> io::Result<()> {
    let mut byte_loop = ByteLoop::default();
    let mut events = Vec::new();
    let mut new_reports = Vec::new();
    let send = |new_reports: &mut Vec<_>| {
        if !new_reports.is_empty() {
            // An engine that is gone needs no reports.
            reports.send((index, std::mem::take(new_reports)));
        }
    };
    loop {
        let now = system.now();
        while let Some(batch) = orders.next() {
            for (id, order) in batch {
                byte_loop.on_order(id, order, now);
            }
        }
        let is_engine_gone = orders.are_senders_gone();
        if is_engine_gone {
            byte_loop.close_all(now);
        }
        byte_loop.settle(&mut system, &mut new_reports);
        send(&mut new_reports);
        if is_engine_gone && byte_loop.is_empty() {
            return Ok(());
        }
        let may_wait = is_engine_gone || orders.prepare_to_sleep();
        let until = if may_wait { byte_loop.wake_at() } else { Some(0) };
        let waited = system.wait(until, 0, &mut events);
        orders.wake_up();
        waited?;
        for event in events.drain(..) {
            byte_loop.on_event(event, &mut new_reports);
        }
        // Before the writes that the next round begins with.
        send(&mut new_reports);
    }
}

impl ByteLoops<LinuxSystem> for LoopThreads {
    fn count(&self) -> usize {
        self.orders.len()
    }

    fn send(&mut self, loop_index: usize, orders: Orders) {
        // A loop that has ended is noticed by `receive`.
        self.orders[loop_index].send(orders);
    }

    fn receive(&mut self, reports: &mut Vec<(usize, ConnectionId, ByteReport)>) -> io::Result<()> {
        self.begin()?;
        if self.has_one_ended.load(Ordering::Acquire) {
            return Err(io::Error::other("a thread that moves bytes has ended"));
        }
        while let Some((index, batch)) = self.reports.next() {
            reports.extend(batch.into_iter().map(|(id, report)| (index, id, report)));
        }
        Ok(())
    }

    fn prepare_to_wait(&mut self) -> bool {
        self.reports.prepare_to_sleep()
    }

    fn end_wait(&mut self) {
        self.reports.wake_up();
    }

    fn run(&mut self, _: &mut LinuxSystem, _: &mut Vec<SystemEvent>) -> Option<u64> {
        None
    }
}
