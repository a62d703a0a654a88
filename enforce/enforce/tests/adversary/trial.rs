//! A hostile script beside a priority client: alone, beside a plain flood, and beside the script, one after the other.

use crate::ground::{Ground, GroundSetting};
use crate::priority::{LatencySample, PRIORITY_TAG, PriorityLane, measure};
use crate::scripts::{HostileScript, flood};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Maximum time for a script's preparation.
const PREPARATION: Duration = Duration::from_secs(15);

/// Environment of a script.
pub struct Scene<'a> {
    pub ground: &'a Ground,
    /// Set when the script must end.
    pub over: &'a AtomicBool,
    /// Set by the script when the priority client may begin.
    pub ready: &'a AtomicBool,
}

impl Scene<'_> {
    pub fn is_over(&self) -> bool {
        self.over.load(SeqCst)
    }

    pub fn set_ready(&self) {
        self.ready.store(true, SeqCst);
    }

    /// Sleeps, but not beyond the end.
    pub fn pause(&self, time: Duration) {
        let until = Instant::now() + time;
        while !self.is_over() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2).min(time));
        }
    }
}

/// Final counts of the server.
#[derive(Debug, Clone, Copy, Default)]
pub struct OracleVerdicts {
    pub most_at_once: u64,
    pub duplicated: u64,
    pub disordered: u64,
    /// Priority requests that were sent, but neither arrived nor were answered.
    pub lost: u64,
    pub wrong: u64,
    /// Device time of best effort per second.
    pub best_effort_per_s: f64,
    /// Longest service of another request, nanoseconds: a request at the device cannot be taken back.
    pub longest_ns: u64,
    /// Longest time that a client took to answer a call of the server, milliseconds.
    pub callback_ms: f64,
}

/// One round.
#[derive(Debug, Clone)]
pub struct PairedRound {
    pub alone: LatencySample,
    pub flood: LatencySample,
    pub beside: LatencySample,
    pub seen: OracleVerdicts,
}

/// A script with its settings.
#[derive(Clone, Copy)]
pub struct HostileTrial<'a> {
    pub script: &'a HostileScript,
    pub setting: GroundSetting,
    pub lane: PriorityLane,
    pub window: Duration,
}

impl HostileTrial<'_> {
    /// Creates a trial with the script's own setting.
    pub fn new(script: &HostileScript) -> HostileTrial<'_> {
        let lane = PriorityLane { connects: script.connects, ..PriorityLane::closed(script.protocol) };
        HostileTrial {
            script,
            setting: GroundSetting::SMALL.with(script.fields),
            lane,
            window: Duration::from_millis(500),
        }
    }

    pub fn alone(&self) -> LatencySample {
        measure(&Ground::new(self.setting), self.lane, self.window)
    }

    pub fn round(&self) -> PairedRound {
        let alone = self.alone();
        let HostileScript { protocol, like, like_size, .. } = *self.script;
        let act = |scene: &Scene<'_>| flood(scene, protocol, like, like_size);
        let (flood, _) = self.beside(&act);
        let (beside, seen) = self.beside(&self.script.act);
        PairedRound { alone, flood, beside, seen }
    }

    pub fn beside_script(&self) -> (LatencySample, OracleVerdicts) {
        self.beside(&self.script.act)
    }

    fn beside(&self, act: &(dyn Fn(&Scene<'_>) + Sync)) -> (LatencySample, OracleVerdicts) {
        let ground = Ground::new(self.setting);
        let over = AtomicBool::new(false);
        let ready = AtomicBool::new(false);
        let begun = Instant::now();
        let sample = std::thread::scope(|scope| {
            let scene = Scene { ground: &ground, over: &over, ready: &ready };
            let script = scope.spawn(move || act(&scene));
            // A script that the proxy obstructs never becomes ready, hence the time limit.
            while !ready.load(SeqCst) && !script.is_finished() && begun.elapsed() < PREPARATION {
                std::thread::sleep(Duration::from_millis(1));
            }
            let sample = measure(&ground, self.lane, self.window);
            over.store(true, SeqCst);
            script.join().expect("a script does not panic");
            sample
        });
        let seen = verdicts(&ground, &sample, begun.elapsed());
        (sample, seen)
    }
}

fn verdicts(ground: &Ground, sample: &LatencySample, took: Duration) -> OracleVerdicts {
    let counts = ground.server.counts();
    let own = counts.tag(PRIORITY_TAG);
    let others = counts.served.iter().filter(|request| request.tag != PRIORITY_TAG);
    let others: Vec<u64> = others.map(|request| request.cost_ns).collect();
    let others_ns: u64 = others.iter().sum();
    OracleVerdicts {
        most_at_once: counts.most_at_once,
        duplicated: own.duplicated,
        disordered: own.disordered,
        lost: sample.failed + own.skipped,
        wrong: sample.wrong,
        best_effort_per_s: others_ns as f64 / 1e9 / took.as_secs_f64(),
        longest_ns: others.iter().max().copied().unwrap_or_default(),
        callback_ms: counts.callbacks_ns.iter().max().map_or(0.0, |longest| *longest as f64 / 1e6),
    }
}
