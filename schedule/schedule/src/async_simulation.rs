//! The asynchronous gate under a simulated executor: any task may be polled or dropped at any time, and the
//! test advances the clock. The reference is a list of all requests, searched anew for each decision.

use crate::async_gate::AsyncGate;
use crate::entry_refusal::EntryRefusal;
use crate::settings::{AsyncGateSettings, ConcurrencyLimit};
use crate::shared_async_gate::GateClock;
use discipline::RequestKey;
use discipline::serve::PoolOrder;
use proptest::prelude::*;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// Progress of a task: it enters, waits for an answer, resumes, and works until told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScriptStage {
    Outside,
    Entering,
    Answering,
    Resuming,
    Working,
    Ended,
    Refused(EntryRefusal),
}

/// State that a task's script shares with the test.
#[derive(Debug)]
struct ScriptState {
    stage: Cell<ScriptStage>,
    has_answer: Cell<bool>,
    /// The task continues without the answer and without its turn.
    abandons: Cell<bool>,
    ends: Cell<bool>,
}

/// Set if a task was woken since its last poll.
#[derive(Debug, Default)]
struct WokenFlag(AtomicBool);

impl Wake for WokenFlag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct SimulatedTask {
    future: Pin<Box<dyn Future<Output = ()>>>,
    state: std::rc::Rc<ScriptState>,
    woken: Arc<WokenFlag>,
}

async fn script(gate: AsyncGate, key: u64, limit: Option<u64>, state: std::rc::Rc<ScriptState>) {
    state.stage.set(ScriptStage::Entering);
    let entry = match limit {
        Some(limit) => gate.enter_within(RequestKey(key), Duration::from_nanos(limit)),
        None => gate.enter(RequestKey(key)),
    };
    let permit = match entry.await {
        Ok(permit) => permit,
        Err(refusal) => return state.stage.set(ScriptStage::Refused(refusal)),
    };
    state.stage.set(ScriptStage::Answering);
    let answer = poll_fn(|_| {
        let is_there = state.has_answer.get();
        if is_there {
            state.stage.set(ScriptStage::Resuming);
        }
        if is_there { Poll::Ready(()) } else { Poll::Pending }
    });
    let mut waiting = Box::pin(permit.while_waiting(answer));
    poll_fn(|context| if state.abandons.get() { Poll::Ready(()) } else { waiting.as_mut().poll(context) })
        .await;
    drop(waiting);
    state.stage.set(ScriptStage::Working);
    poll_fn(|_| if state.ends.get() { Poll::Ready(()) } else { Poll::Pending }).await;
    drop(permit);
    state.stage.set(ScriptStage::Ended);
}

impl SimulatedTask {
    fn new(gate: &AsyncGate, key: u64, limit: Option<u64>) -> Self {
        let state = std::rc::Rc::new(ScriptState {
            stage: Cell::new(ScriptStage::Outside),
            has_answer: Cell::new(false),
            abandons: Cell::new(false),
            ends: Cell::new(false),
        });
        let future = Box::pin(script(gate.clone(), key, limit, std::rc::Rc::clone(&state)));
        Self { future, state, woken: Arc::default() }
    }

    fn poll(&mut self) {
        if matches!(self.state.stage.get(), ScriptStage::Ended | ScriptStage::Refused(_)) {
            return;
        }
        self.woken.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&self.woken));
        let _ = self.future.as_mut().poll(&mut Context::from_waker(&waker));
    }
}

/// State of a request in the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListedPlace {
    Absent,
    Waiting,
    Serving,
    Blocked,
    Refused(EntryRefusal),
}

/// A request in the reference.
#[derive(Debug, Clone)]
struct ListedTask {
    key: u64,
    limit: Option<u64>,
    stage: ScriptStage,
    place: ListedPlace,
    number: u64,
    /// End of the wait for its first turn; `None` after that.
    expires: Option<u64>,
    is_first_turn: bool,
    has_answer: bool,
    abandons: bool,
    ends: bool,
}

/// The reference: the gate's promises, step by step.
#[derive(Debug)]
struct ListedGate {
    limit: usize,
    waiting_max: usize,
    tasks: Vec<ListedTask>,
    numbers: u64,
}

impl ListedGate {
    fn count(&self, place: ListedPlace) -> usize {
        self.tasks.iter().filter(|task| task.place == place).count()
    }

    fn admit(&mut self) {
        while self.count(ListedPlace::Serving) < self.limit {
            let waiting = self.tasks.iter_mut().filter(|task| task.place == ListedPlace::Waiting);
            let Some(oldest) = waiting.min_by_key(|task| (task.key, task.number)) else { return };
            oldest.place = ListedPlace::Serving;
            oldest.is_first_turn = false;
        }
    }

    fn refuse_too_many(&mut self) {
        loop {
            let first = |task: &&mut ListedTask| task.place == ListedPlace::Waiting && task.is_first_turn;
            if self.tasks.iter_mut().filter(first).count() <= self.waiting_max {
                return;
            }
            let youngest = self.tasks.iter_mut().filter(first).max_by_key(|task| (task.key, task.number));
            youngest.expect("too many").place = ListedPlace::Refused(EntryRefusal::Overloaded);
        }
    }

    fn let_time_pass(&mut self, now: u64) {
        for task in &mut self.tasks {
            let is_waiting = task.place == ListedPlace::Waiting && task.is_first_turn;
            if is_waiting && task.expires.is_some_and(|instant| instant <= now) {
                task.place = ListedPlace::Refused(EntryRefusal::TimedOut);
            }
        }
    }

    fn put(&mut self, index: usize, place: ListedPlace) {
        self.tasks[index].place = place;
        self.admit();
    }

    /// Returns the next stage; `None` if the task has to wait.
    fn next(&mut self, index: usize, now: u64) -> Option<ScriptStage> {
        let task = &mut self.tasks[index];
        match (task.stage, task.place) {
            (ScriptStage::Outside, _) => {
                self.numbers += 1;
                task.number = self.numbers;
                task.is_first_turn = true;
                task.expires = task.limit.map(|limit| now + limit);
                self.put(index, ListedPlace::Waiting);
                self.refuse_too_many();
                Some(ScriptStage::Entering)
            }
            (ScriptStage::Entering, ListedPlace::Refused(refusal)) => {
                task.place = ListedPlace::Absent;
                Some(ScriptStage::Refused(refusal))
            }
            (ScriptStage::Entering, ListedPlace::Serving) if task.abandons => Some(ScriptStage::Working),
            (ScriptStage::Entering, ListedPlace::Serving) => {
                self.put(index, ListedPlace::Blocked);
                Some(ScriptStage::Answering)
            }
            (ScriptStage::Answering, _) if task.abandons => {
                self.put(index, ListedPlace::Waiting);
                Some(ScriptStage::Working)
            }
            (ScriptStage::Resuming, _) if task.abandons => Some(ScriptStage::Working),
            (ScriptStage::Answering, _) if task.has_answer => {
                self.put(index, ListedPlace::Waiting);
                Some(ScriptStage::Resuming)
            }
            (ScriptStage::Resuming, ListedPlace::Serving) => Some(ScriptStage::Working),
            (ScriptStage::Working, _) if task.ends => {
                self.put(index, ListedPlace::Absent);
                Some(ScriptStage::Ended)
            }
            _ => None,
        }
    }

    fn poll(&mut self, index: usize, now: u64) {
        while let Some(stage) = self.next(index, now) {
            self.tasks[index].stage = stage;
        }
    }

    /// Returns true if the gate lets a waiting task continue.
    fn lets_go_on(&self, index: usize) -> bool {
        let ListedTask { stage, place, .. } = &self.tasks[index];
        let waits = matches!(stage, ScriptStage::Entering | ScriptStage::Resuming);
        waits && matches!(place, ListedPlace::Serving | ListedPlace::Refused(_))
    }
}

#[derive(Debug, Clone)]
enum ExecutorStep {
    Start { key: u64, limit: Option<u64> },
    Poll(usize),
    Drop(usize),
    Answer(usize),
    Abandon(usize),
    End(usize),
    Pass(u64),
}

fn executor_step() -> impl Strategy<Value = ExecutorStep> {
    prop_oneof![
        4 => (0u64..20, proptest::option::of(0u64..40))
            .prop_map(|(key, limit)| ExecutorStep::Start { key, limit }),
        10 => any::<usize>().prop_map(ExecutorStep::Poll),
        2 => any::<usize>().prop_map(ExecutorStep::Drop),
        3 => any::<usize>().prop_map(ExecutorStep::Answer),
        1 => any::<usize>().prop_map(ExecutorStep::Abandon),
        3 => any::<usize>().prop_map(ExecutorStep::End),
        2 => (0u64..15).prop_map(ExecutorStep::Pass),
    ]
}

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(0) };
}

/// The gate with its tasks beside the reference.
struct Executed {
    gate: AsyncGate,
    tasks: Vec<Option<SimulatedTask>>,
    listed: ListedGate,
}

impl Executed {
    fn new(limit: u32, waiting_max: Option<usize>) -> Self {
        NOW.set(0);
        let workers = NonZeroU32::new(limit).expect("at least 1");
        let settings = AsyncGateSettings {
            limit: ConcurrencyLimit::Fixed(workers),
            order: PoolOrder::Age,
            workers,
            patience: None,
            waiting_max,
        };
        let clock = GateClock { now: || NOW.get(), passes_by_itself: false };
        let limit = limit as usize;
        let waiting_max = waiting_max.unwrap_or(usize::MAX);
        let listed = ListedGate { limit, waiting_max, tasks: Vec::new(), numbers: 0 };
        Self { gate: AsyncGate::with_clock(settings, clock), tasks: Vec::new(), listed }
    }

    /// Returns one of the present tasks.
    fn choose(&self, number: usize) -> Option<usize> {
        let present: Vec<usize> =
            (0..self.tasks.len()).filter(|index| self.tasks[*index].is_some()).collect();
        (!present.is_empty()).then(|| present[number % present.len()])
    }

    fn start(&mut self, key: u64, limit: Option<u64>) {
        self.tasks.push(Some(SimulatedTask::new(&self.gate, key, limit)));
        self.listed.tasks.push(ListedTask {
            key,
            limit,
            stage: ScriptStage::Outside,
            place: ListedPlace::Absent,
            number: 0,
            expires: None,
            is_first_turn: false,
            has_answer: false,
            abandons: false,
            ends: false,
        });
    }

    fn play(&mut self, step: &ExecutorStep) {
        let now = NOW.get();
        match *step {
            ExecutorStep::Start { key, limit } => self.start(key, limit),
            ExecutorStep::Pass(time) => {
                NOW.set(now + time);
                self.gate.wake();
                self.listed.let_time_pass(now + time);
            }
            ExecutorStep::Poll(number)
            | ExecutorStep::Drop(number)
            | ExecutorStep::Answer(number)
            | ExecutorStep::Abandon(number)
            | ExecutorStep::End(number) => {
                if let Some(index) = self.choose(number) {
                    self.act(step, index, now);
                }
            }
        }
    }

    fn act(&mut self, step: &ExecutorStep, index: usize, now: u64) {
        let task = self.tasks[index].as_mut().expect("it is there");
        match step {
            ExecutorStep::Poll(_) => {
                task.poll();
                self.listed.poll(index, now);
            }
            ExecutorStep::Drop(_) => {
                self.tasks[index] = None;
                self.listed.put(index, ListedPlace::Absent);
            }
            ExecutorStep::Answer(_) => {
                task.state.has_answer.set(true);
                self.listed.tasks[index].has_answer = true;
            }
            ExecutorStep::Abandon(_) => {
                task.state.abandons.set(true);
                self.listed.tasks[index].abandons = true;
            }
            _ => {
                task.state.ends.set(true);
                self.listed.tasks[index].ends = true;
            }
        }
    }

    fn check(&self) {
        for (index, task) in self.tasks.iter().enumerate() {
            let Some(task) = task else { continue };
            let listed = &self.listed.tasks[index];
            assert_eq!(task.state.stage.get(), listed.stage, "task {index}: {listed:?}");
            let is_woken = task.woken.0.load(Ordering::Relaxed);
            assert!(is_woken || !self.listed.lets_go_on(index), "task {index} was not woken: {listed:?}");
        }
        let now = self.gate.statistics();
        let expected = [ListedPlace::Waiting, ListedPlace::Serving, ListedPlace::Blocked]
            .map(|place| self.listed.count(place));
        assert_eq!([now.waiting, now.serving, now.blocked], expected);
    }
}

proptest! {
    #[test]
    fn as_a_list_says_whatever_is_polled_and_dropped(
        limit in 1u32..4,
        waiting_max in proptest::option::of(0usize..4),
        steps in proptest::collection::vec(executor_step(), 0..120),
    ) {
        // In tests, the locks of this crate are the checker's.
        let play = move || {
            let mut executed = Executed::new(limit, waiting_max);
            for step in &steps {
                executed.play(step);
                executed.check();
            }
            executed.tasks.clear();
            let now = executed.gate.statistics();
            assert_eq!((now.waiting, now.serving, now.blocked), (0, 0, 0));
            assert_eq!(now.entered, now.left);
        };
        shuttle::check_random(play, 1);
    }
}
