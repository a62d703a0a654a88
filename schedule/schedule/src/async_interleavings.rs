//! The asynchronous gate under random interleavings of polling threads: no task sleeps for ever, at most
//! c run, and futures dropped at any time leak nothing.

use crate::async_gate::AsyncGate;
use crate::async_permit::AsyncPermit;
use crate::settings::{AsyncGateSettings, ConcurrencyLimit};
use crate::shared_async_gate::GateClock;
use discipline::RequestKey;
use discipline::serve::PoolOrder;
use shuttle::future::{block_on, yield_now};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::thread;
use std::future::Future;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// Number of interleavings of one test.
const INTERLEAVINGS: usize = 400;
/// Threads with requests.
const THREADS: u32 = 4;

/// A future that is dropped after this many polls.
struct Abandoned<F> {
    future: Pin<Box<F>>,
    polls: u32,
}

impl<F: Future> Future for Abandoned<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<F::Output>> {
        if self.polls == 0 {
            return Poll::Ready(None);
        }
        self.polls -= 1;
        context.waker().wake_by_ref();
        self.future.as_mut().poll(context).map(Some)
    }
}

/// A gate that threads use, and the number of running requests.
struct PlayedTasks {
    gate: AsyncGate,
    limit: usize,
    running: AtomicUsize,
}

impl PlayedTasks {
    fn new(limit: u32, waiting_max: Option<usize>) -> Self {
        let c = NonZeroU32::new(limit).expect("at least 1");
        let settings = AsyncGateSettings {
            limit: ConcurrencyLimit::Fixed(c),
            order: PoolOrder::Age,
            workers: c,
            patience: None,
            waiting_max,
        };
        let clock = GateClock { now: || 0, passes_by_itself: false };
        let limit = limit as usize;
        Self { gate: AsyncGate::with_clock(settings, clock), limit, running: AtomicUsize::new(0) }
    }

    async fn work(&self) {
        let before = self.running.fetch_add(1, Ordering::SeqCst);
        assert!(before < self.limit, "more than c run");
        yield_now().await;
        self.running.fetch_sub(1, Ordering::SeqCst);
    }

    async fn entry(&self) -> Option<AsyncPermit> {
        let key = RequestKey(u64::from(thread_rng().gen_range(0..3u8)));
        let entry = match thread_rng().gen_range(0..3u8) {
            // Times out as soon as time advances.
            0 => self.gate.enter_within(key, Duration::ZERO),
            _ => self.gate.enter(key),
        };
        if thread_rng().gen_bool(0.5) {
            return entry.await.ok();
        }
        let polls = thread_rng().gen_range(0..4);
        Abandoned { future: Box::pin(entry), polls }.await?.ok()
    }

    /// A request: it enters or gives up, works, waits for something else and may give that up, and
    /// continues in its turn.
    async fn request(&self) {
        let Some(permit) = self.entry().await else { return };
        self.work().await;
        let handle = permit.handle();
        let future = Box::pin(handle.while_waiting(yield_now()));
        let polls = thread_rng().gen_range(0..5);
        Abandoned { future, polls }.await;
        if thread_rng().gen_bool(0.5) {
            handle.resume().await;
            self.work().await;
        }
        drop(permit);
        handle.while_waiting(yield_now()).await;
    }
}

fn play(make: impl Fn() -> PlayedTasks + Send + Sync + 'static) {
    let round = move || {
        let played = Arc::new(make());
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let played = Arc::clone(&played);
                thread::spawn(move || (0..2).for_each(|_| block_on(played.request())))
            })
            .collect();
        // Advances time as long as a request may be refused by it.
        while played.gate.wake().is_some() {
            thread::yield_now();
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let now = played.gate.statistics();
        assert_eq!((now.waiting, now.serving, now.blocked), (0, 0, 0), "{now:?}");
        assert_eq!(now.entered, now.left);
    };
    shuttle::check_random(round, INTERLEAVINGS);
}

#[test]
fn at_most_c_run_and_nothing_is_leaked() {
    play(|| PlayedTasks::new(1, None));
    play(|| PlayedTasks::new(2, None));
}

#[test]
fn with_a_greatest_number_that_waits_nothing_is_leaked() {
    play(|| PlayedTasks::new(1, Some(1)));
}
