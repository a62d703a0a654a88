//! Alerts on burn rates over simulated days: reports come late or not at all, the controller restarts, and a judge that
//! keeps every request says when an alert must fire and when it must not.

use super::simulated::traffic::{CLASS, MARGIN, PROFILE, class, footprint};
use agent::{Abilities, AgentMode, AgentReport, ClientPlace, ServerObservation, WorkloadCounters};
use controller::{
    AlertKind, AlertState, BurnAlert, ClassDescription, ClassesDescription, Command, Controller,
    EVENT_VERSION, Event, HostsDescription, NetworkEnforcement, RecordedEvent, ServerPlace, WorkloadRequest,
};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use std::collections::{BTreeMap, BTreeSet};

const SEEDS: u64 = 6;
const S: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * S;
const HOUR: u64 = 60 * MINUTE;
/// Simulated time of a seed.
const END: u64 = 24 * HOUR;
/// Share of requests that may be late.
const BUDGET: f64 = 0.01;
/// Least time between two events of an alert.
const INTERVAL: u64 = MINUTE;
/// Longest period in which requests are added up.
const PERIOD: u64 = MINUTE;

struct Day {
    dice: StdRng,
    history: Vec<RecordedEvent>,
    controller: Controller,
    run: u64,
    /// Time, and the beginning of the present run.
    now: u64,
    run_began: u64,
    /// Counters of the proxy: requests, and late ones.
    requests: u64,
    late: u64,
    /// Requests of this run by the time of their report, added up: time, requests, late ones.
    told: Vec<(u64, u64, u64)>,
    /// State and latest event of each alert, and since when it must have another state.
    firing: [bool; 2],
    changed_at: [Option<u64>; 2],
    overdue_since: [Option<u64>; 2],
    changes: u64,
}

fn request() -> WorkloadRequest {
    WorkloadRequest {
        tenant: "t".to_owned(),
        name: "w".to_owned(),
        slo: "99% < 300ms".parse().expect("an SLO"),
        clients: vec![ClientPlace { host: None, address: vec!["a".to_owned()], export: None }],
        key: None,
        footprints: BTreeMap::from([(CLASS.to_owned(), footprint(2, 50))]),
    }
}

impl Day {
    fn new(seed: u64) -> Self {
        let mut day = Self {
            dice: StdRng::seed_from_u64(seed),
            history: Vec::new(),
            controller: Controller::new(1),
            run: 1,
            now: 0,
            run_began: 0,
            requests: 0,
            late: 0,
            told: Vec::new(),
            firing: [false; 2],
            changed_at: [None; 2],
            overdue_since: [None; 2],
            changes: 0,
        };
        let server = format!("{CLASS}-1");
        let place = ServerPlace { server: server.clone(), class: CLASS.to_owned(), host: "h".to_owned() };
        let classes = vec![ClassDescription { class: class(), profile: PROFILE.to_owned() }];
        let abilities = Abilities { storage: BTreeSet::from([server]), network: false };
        for event in [
            Event::Founded { cluster: "c".to_owned() },
            Event::ClassesDescribed(ClassesDescription { safety_margin: MARGIN, classes }),
            Event::HostsDescribed(HostsDescription {
                text: String::new(),
                hosts: vec!["h".to_owned()],
                servers: vec![place],
                network: NetworkEnforcement::Assumed,
            }),
            Event::AgentSeen { host: "h".to_owned(), mode: AgentMode::Applying, abilities },
        ] {
            day.append(event);
        }
        let admitted =
            day.controller.decide(&Command::Request(Box::new(request()))).expect("a right request");
        assert!(matches!(admitted, Event::WorkloadAdmitted(_)), "{admitted:?}");
        day.append(admitted);
        day
    }

    fn append(&mut self, event: Event) {
        let seq = self.controller.state().seq + 1;
        let recorded = RecordedEvent { seq, at_ns: self.now, version: EVENT_VERSION, event };
        self.controller.apply(&recorded).expect("it follows");
        self.history.push(recorded);
    }

    /// The controller ends and starts again: its clock begins anew, and what it saw is gone.
    fn restart(&mut self) {
        self.run += 1;
        self.controller = Controller::new(self.run);
        for recorded in &self.history {
            self.controller.apply(recorded).expect("it was applied before");
        }
        self.run_began = self.now;
        self.told.clear();
        self.changed_at = [None; 2];
        self.overdue_since = [None; 2];
    }

    fn report(&mut self) -> Result<(), String> {
        let ticket = self.controller.answer("h", 0).ticket;
        let workload = WorkloadCounters {
            workload: "t/w".to_owned(),
            requests: self.requests,
            late: self.late,
            latencies: vec![(Some(1_000_000), self.requests - self.late), (Some(400_000_000), self.late)],
            ..WorkloadCounters::default()
        };
        let observation = ServerObservation {
            server: format!("{CLASS}-1"),
            counters: "one".to_owned(),
            workloads: vec![workload],
            ..ServerObservation::default()
        };
        let report = AgentReport {
            cluster: Some("c".to_owned()),
            ticket: Some(ticket),
            mode: AgentMode::Applying,
            abilities: Abilities::default(),
            applied: 0,
            refused: None,
            advice: None,
            observations: vec![observation],
            warnings: Vec::new(),
        };
        let events = self.controller.observe("h", &report, self.now - self.run_began);
        // The first report of a run is the point from which it counts.
        self.told.push((self.now, self.requests, self.late));
        for event in events {
            self.judge_event(&event)?;
            self.append(event);
        }
        self.judge_state()
    }

    /// Requests and late ones of a window that begins between `window` and a period more ago: the least and the most burn
    /// rates of any such window, and the least and the most late requests.
    fn seen(&self, window: u64) -> ([f64; 2], [u64; 2]) {
        let base = self.told[0];
        let last = self.told[self.told.len() - 1];
        let mut rates = [f64::INFINITY, f64::NEG_INFINITY];
        let mut lates = [u64::MAX, 0];
        let told_by =
            |ago: u64| self.told.partition_point(|(told, _, _)| *told <= self.now.saturating_sub(ago));
        for at in told_by(window + PERIOD)..=told_by(window) {
            let (_, requests, late) = if at == 0 { base } else { self.told[at - 1] };
            let requests = last.1 - requests;
            let late = last.2 - late;
            let rate = if requests == 0 { 0.0 } else { late as f64 / requests as f64 / BUDGET };
            rates = [rates[0].min(rate), rates[1].max(rate)];
            lates = [lates[0].min(late), lates[1].max(late)];
        }
        (rates, lates)
    }

    /// Returns whether an alert must fire now, and whether it may.
    fn expected(&self, alert: BurnAlert) -> (bool, bool) {
        let (long, short, limit) = match alert {
            BurnAlert::Fast => (HOUR, 5 * MINUTE, 14.4),
            BurnAlert::Slow => (6 * HOUR, 30 * MINUTE, 6.0),
        };
        let (long_rates, lates) = self.seen(long);
        let (short_rates, _) = self.seen(short);
        let is_above = |end: usize| long_rates[end] > limit && short_rates[end] > limit && lates[end] >= 10;
        (is_above(0), is_above(1))
    }

    fn judge_event(&mut self, event: &Event) -> Result<(), String> {
        let Event::BurnChanged { burn, state, reason, .. } = event else { return Ok(()) };
        let at = self.now / S;
        let index = BurnAlert::ALL.iter().position(|alert| alert == burn).expect("it is one of them");
        let (must, may) = self.expected(*burn);
        let fires = *state == AlertState::Firing;
        if fires == self.firing[index] {
            return Err(format!("{at} s: {burn:?} is {state:?} twice: {reason}"));
        }
        if (fires && !may) || (!fires && must) {
            return Err(format!("{at} s: {burn:?} is {state:?} without cause: {reason}"));
        }
        if self.changed_at[index].is_some_and(|before| self.now < before + INTERVAL) {
            return Err(format!("{at} s: {burn:?} changes twice within a minute"));
        }
        self.firing[index] = fires;
        self.changed_at[index] = Some(self.now);
        self.changes += 1;
        Ok(())
    }

    /// An alert that should have changed has done so within its interval.
    fn judge_state(&mut self) -> Result<(), String> {
        for (index, alert) in BurnAlert::ALL.into_iter().enumerate() {
            let (must, may) = self.expected(alert);
            // Nothing ends after a restart before the short window is known.
            let short = [5 * MINUTE, 30 * MINUTE][index] + PERIOD;
            let knows_end = self.now - self.told[0].0 >= short;
            let is_right = if self.firing[index] { may || !knows_end } else { !must };
            let since = self.overdue_since[index].get_or_insert(self.now);
            if is_right {
                self.overdue_since[index] = None;
            } else if self.now - *since > INTERVAL + 10 * S {
                let state = if self.firing[index] { "fires" } else { "does not fire" };
                return Err(format!("{} s: {alert:?} {state} since {} s", self.now / S, *since / S));
            }
        }
        Ok(())
    }

    /// The alerts of the history begin and end in turns.
    fn judge_alerts(&self) -> Result<(), String> {
        let (alerts, _) = self.controller.state().alerts_after(0, usize::MAX);
        for (kind, alert) in
            [AlertKind::BudgetBurnsFast, AlertKind::BudgetBurnsSlowly].into_iter().zip(BurnAlert::ALL)
        {
            let states: Vec<AlertState> =
                alerts.iter().filter(|it| it.alert == kind).map(|it| it.state).collect();
            let turns =
                states.iter().enumerate().all(|(at, state)| (*state == AlertState::Firing) == (at % 2 == 0));
            let is_open = states.len() % 2 == 1;
            let workload = self.controller.state().workloads().next().map(|(_, workload)| workload);
            let is_known = workload.is_some_and(|workload| workload.burns.contains(&alert));
            if !turns || (workload.is_some() && is_open != is_known) || (workload.is_none() && is_open) {
                return Err(format!("{kind:?}: {states:?}"));
            }
        }
        Ok(())
    }

    fn play(&mut self, restarts: bool) -> Result<(), String> {
        let mut share = 0.0;
        let mut until = 0;
        while self.now < END {
            if self.now >= until {
                let shares = [0.0, 0.0, 0.002, 0.05, 0.1, 0.2, 0.5, 1.0];
                share = shares[self.dice.random_range(0..shares.len())];
                until = self.now + self.dice.random_range(MINUTE..90 * MINUTE);
            }
            let wait = match self.dice.random_range(0..1000) {
                0 => self.dice.random_range(5..20 * 60) * S,
                _ => 5 * S,
            };
            self.now += wait;
            if restarts && self.dice.random_range(0..3000) == 0 {
                self.restart();
            }
            let requests = self.dice.random_range(0..40);
            self.requests += requests;
            self.late += (0..requests).filter(|_| self.dice.random_bool(share)).count() as u64;
            self.report()?;
        }
        self.judge_alerts()?;
        let removed = Command::Remove { tenant: "t".to_owned(), name: "w".to_owned() };
        let removed = self.controller.decide(&removed).expect("it is there");
        self.append(removed);
        self.judge_alerts()
    }
}

#[test]
fn alerts_on_burn_rates_begin_and_end_with_the_burning() {
    let mut changes = 0;
    for seed in 0..SEEDS {
        let mut day = Day::new(seed);
        day.play(seed % 2 == 1).unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
        changes += day.changes;
    }
    println!("{SEEDS} times {} hours: {changes} changes of alerts", END / HOUR);
    assert!(changes > 10 * SEEDS, "{changes}");
}
