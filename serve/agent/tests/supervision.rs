//! Simulated hosts whose proxies crash, hang, start slowly or cannot start, whose agents are killed and whose clocks step,
//! judged from outside: no second proxy beside a living one, no hasty starts, and service again after the last fault.

use agent::{ProxyNews, ProxySight, SupervisedProxy};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use std::time::Duration;

const SEEDS: u64 = 2000;
const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;
/// Duration of the faults of a world.
const FAULTS: u64 = 600 * S;
/// Time in which a proxy must answer after the last fault: the longest pause, a slow start, a hang, and a look.
const RECOVERY: u64 = 50 * S;
/// Longest start, and longest hang, of a process.
const SLOW: u64 = 8 * S;

/// A process that serves, or will.
#[derive(Debug, Clone, Copy)]
struct Process {
    answers_at: u64,
    dies_at: u64,
    hangs: (u64, u64),
}

#[derive(Debug)]
struct World {
    dice: StdRng,
    now: u64,
    /// Excess of the agent's clock over `now`.
    step: i64,
    agent: SupervisedProxy,
    process: Option<Process>,
    /// Addresses are taken by another program until then.
    taken_until: u64,
    /// Starts in a row without a proxy that ran well, and the latest end, of this agent with this clock.
    failures: u32,
    ended_at: Option<u64>,
    starts: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut dice = StdRng::seed_from_u64(seed);
        let step = dice.random_range(0..1000 * S.cast_signed());
        let agent = SupervisedProxy::new("cache-1");
        Self {
            dice,
            now: 0,
            step,
            agent,
            process: None,
            taken_until: 0,
            failures: 0,
            ended_at: None,
            starts: 0,
        }
    }

    fn clock(&self) -> Duration {
        Duration::from_nanos((self.now + 2000 * S).saturating_add_signed(self.step))
    }

    fn start(&mut self) {
        let begins = self.now;
        let answers_at = begins + self.dice.random_range(5 * MS..SLOW);
        let dies_at = if begins < self.taken_until {
            begins + self.dice.random_range(MS..20 * MS)
        } else if begins < FAULTS && self.dice.random_bool(0.7) {
            begins + self.dice.random_range(MS..60 * S)
        } else {
            u64::MAX
        };
        let hangs_at =
            if self.dice.random_bool(0.2) { begins + self.dice.random_range(0..60 * S) } else { 0 };
        let hangs = (hangs_at.min(FAULTS), (hangs_at + self.dice.random_range(0..SLOW)).min(FAULTS));
        self.process = Some(Process { answers_at, dies_at, hangs });
    }

    fn sight(&mut self) -> ProxySight {
        if self.process.is_some_and(|process| process.dies_at <= self.now) {
            self.process = None;
        }
        match self.process {
            None => ProxySight::Absent(self.dice.random_bool(0.8).then(|| "address in use".to_owned())),
            Some(Process { answers_at, hangs: (from, to), .. }) => {
                let hangs = (from..to).contains(&self.now);
                if self.now >= answers_at && !hangs { ProxySight::Answers } else { ProxySight::Silent }
            }
        }
    }

    /// Lets something happen that is not the agent's doing.
    fn befall(&mut self) {
        match self.dice.random_range(0..400) {
            0 => {
                self.agent = SupervisedProxy::new("cache-1");
                self.failures = 0;
                self.ended_at = None;
            }
            1 => {
                self.step = self.dice.random_range(-1000 * S.cast_signed()..1000 * S.cast_signed());
                self.failures = 0;
                self.ended_at = None;
            }
            2 => self.taken_until = self.now + self.dice.random_range(0..90 * S),
            3 => self.process = None,
            // A person starts one by hand, where none is.
            4 if self.process.is_none() => self.start(),
            _ => {}
        }
    }

    fn look(&mut self) -> Result<(), String> {
        let sight = self.sight();
        let step = self.agent.look(self.clock(), &sight);
        let at = self.now as f64 / 1e9;
        match step.news {
            Some(ProxyNews::Ended { .. }) => {
                self.failures += 1;
                self.ended_at = Some(self.now);
            }
            Some(ProxyNews::Started | ProxyNews::Adopted) if self.process.is_none() => {
                return Err(format!("{at} s: nothing answers, and the news is {:?}", step.news));
            }
            _ => {}
        }
        if self.agent.warning().is_none() {
            self.failures = 0;
        }
        if !step.starts {
            return Ok(());
        }
        self.starts += 1;
        if self.process.is_some() {
            return Err(format!("{at} s: a second proxy beside a living one"));
        }
        if let Some(ended) = self.ended_at.filter(|_| self.failures > 0) {
            let least = ((100 * MS) << (self.failures - 1).min(16)).min(30 * S);
            if self.now - ended < least {
                return Err(format!("{at} s: start {} after {} ns", self.failures, self.now - ended));
            }
        }
        self.start();
        Ok(())
    }
}

fn play(seed: u64) -> Result<u64, String> {
    let mut world = World::new(seed);
    while world.now < FAULTS {
        world.befall();
        world.look()?;
        let late = if world.dice.random_bool(0.05) { world.dice.random_range(0..3 * S) } else { 0 };
        let wait = world.agent.look_after(world.clock()).as_nanos().try_into().unwrap_or(u64::MAX);
        if wait > S {
            return Err(format!("{} ns: the next look is {wait} ns away", world.now));
        }
        world.now += wait.max(MS) + late;
    }
    world.taken_until = 0;
    if let Some(process) = &mut world.process {
        process.dies_at = if process.dies_at <= world.now { process.dies_at } else { u64::MAX };
    }
    let calm = world.now;
    while world.sight() != ProxySight::Answers {
        if world.now > calm + RECOVERY {
            return Err(format!("nothing answers {RECOVERY} ns after the last fault: {world:?}"));
        }
        world.look()?;
        world.now += MS * 50;
    }
    for _ in 0..300 {
        world.look()?;
        world.now += MS * 50;
    }
    match world.agent.warning() {
        Some(warning) => Err(format!("a warning stays: {warning}")),
        None => Ok(world.starts),
    }
}

#[test]
fn proxies_are_never_doubled_never_hurried_and_always_come_back() {
    let mut starts = 0;
    for seed in 0..SEEDS {
        starts += play(seed).unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
    }
    println!("{SEEDS} hosts, {starts} starts, {} days", SEEDS * FAULTS / S / 86_400);
    assert!(starts > SEEDS * 5, "{starts}");
}
