//! Packs many applicants in lanes: parts of the order that are filled independently.
//!
//! First fit scans the whole order for each server. With a patience it looks ahead only a little, so that a
//! part of the order gives nearly the same servers. So each lane is filled separately, as many at once as
//! there are procedures. The last server of a lane, for which candidates ran out, is dissolved: its members
//! and the workloads without a place are placed together at the end. Lanes depend on the number of applicants
//! alone, and procedures clear their caches before each, so the result does not depend on the number of
//! threads.

use super::control::{PackingControl, PackingPhase, PackingProgress};
use super::fill::{FillRule, FilledServers, fill};
use super::questions::{Interruption, PackingQuestions};
use crate::admission::AdmissionProcedure;
use machine::parallel;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A lane has so many applicants at most.
const LANE_MAX: usize = 250;

/// Fills servers with the applicants, who are in ascending order, in lanes. Of an interrupted filling, the last server of each lane
/// has who was certain to fit there.
pub(super) fn fill_in_lanes<P>(
    questions: &mut PackingQuestions<'_, P>,
    procedures: &[P],
    order: &[usize],
    rule: FillRule,
) -> (FilledServers, Option<Interruption>)
where
    P: AdmissionProcedure<Sketch: Send + Sync> + Sync,
{
    let lane_count = order.len().div_ceil(LANE_MAX).max(1);
    let parts: Vec<&[usize]> = order.chunks(order.len().div_ceil(lane_count).max(1)).collect();
    let lanes = Lanes {
        questions,
        rule: FillRule { rounds: 1, ..rule },
        next: AtomicUsize::new(0),
        placed: parts.iter().map(|_| AtomicUsize::new(0)).collect(),
        done: Mutex::new(parts.iter().map(|_| None).collect()),
        parts,
        total: order.len(),
    };
    parallel::map(procedures, |procedure| lanes.fill_by(procedure));
    let mut joined = lanes.joined();
    questions.asked += joined.asked;
    if joined.interruption.is_some() {
        joined.filled.keep_rests(joined.last, rule.servers);
        return (joined.filled, joined.interruption);
    }
    let FilledServers { servers, left_over } = &mut joined.filled;
    left_over.extend(joined.last.iter().flatten());
    left_over.sort_unstable();
    let placed: usize = servers.iter().map(Vec::len).sum();
    let rest = FillRule { servers: rule.servers - servers.len(), ..rule };
    let (last, interruption) = fill_rest(questions, left_over, rest, placed);
    servers.extend(last.servers);
    *left_over = last.left_over;
    if interruption.is_some() {
        joined.filled.keep_rests(joined.last, rule.servers);
    }
    (joined.filled, interruption)
}

impl FilledServers {
    /// Keeps the members of these servers that have no other place, up to `room` servers.
    fn keep_rests(&mut self, servers: Vec<Vec<usize>>, room: usize) {
        let placed: BTreeSet<usize> = self.servers.iter().flatten().copied().collect();
        for mut members in servers {
            members.retain(|member| !placed.contains(member));
            if self.servers.len() < room && !members.is_empty() {
                self.left_over.retain(|applicant| !members.contains(applicant));
                self.servers.push(members);
            }
        }
    }
}

/// Fills servers with those whom the lanes left over, when so many have a place.
fn fill_rest<P: AdmissionProcedure>(
    questions: &mut PackingQuestions<'_, P>,
    order: &[usize],
    rule: FillRule,
    placed: usize,
) -> (FilledServers, Option<Interruption>) {
    let control = questions.control;
    let watch = |progress: PackingProgress| match progress.phase {
        PackingPhase::FirstFit(_) => {
            let done = placed + progress.done;
            let total = placed + progress.total;
            (control.watch)(PackingProgress { done, total, ..progress });
        }
        _ => (control.watch)(progress),
    };
    let control = PackingControl { watch: &watch, ..*control };
    let PackingQuestions { procedure, problem, .. } = *questions;
    procedure.forget();
    let mut rest = PackingQuestions { procedure, problem, control: &control, asked: 0 };
    let filled = fill(&mut rest, order, rule);
    questions.asked += rest.asked;
    filled
}

/// Lanes that several threads fill.
struct Lanes<'a, 'q, P: AdmissionProcedure> {
    questions: &'a PackingQuestions<'q, P>,
    parts: Vec<&'a [usize]>,
    /// The number of applicants of all lanes.
    total: usize,
    rule: FillRule,
    /// The next lane to begin.
    next: AtomicUsize,
    /// Number of placed applicants by lane.
    placed: Vec<AtomicUsize>,
    done: Mutex<Vec<Option<FilledLane>>>,
}

/// A lane that is filled, or several of them together.
#[derive(Debug, Default)]
struct FilledLane {
    filled: FilledServers,
    /// The servers that are taken apart when all lanes are filled.
    last: Vec<Vec<usize>>,
    interruption: Option<Interruption>,
    /// Number of questions to the procedure.
    asked: usize,
}

impl<P: AdmissionProcedure<Sketch: Send + Sync> + Sync> Lanes<'_, '_, P> {
    /// Fills one lane after the other by this procedure.
    fn fill_by(&self, procedure: &P) {
        loop {
            let lane = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = self.parts.get(lane) else { return };
            let filled = if self.is_beyond_servers(lane) {
                let filled = FilledServers { servers: Vec::new(), left_over: part.to_vec() };
                FilledLane { filled, ..FilledLane::default() }
            } else {
                procedure.forget();
                self.fill_lane(lane, procedure)
            };
            self.done.lock().expect("no thread panics while it holds the lock")[lane] = Some(filled);
        }
    }

    /// Returns true if the lanes before this one are known to use all servers.
    fn is_beyond_servers(&self, lane: usize) -> bool {
        let done = self.done.lock().expect("no thread panics while it holds the lock");
        let servers = done[..lane].iter().flatten().map(|lane| lane.filled.servers.len());
        servers.sum::<usize>() >= self.rule.servers
    }

    fn fill_lane(&self, lane: usize, procedure: &P) -> FilledLane {
        let PackingQuestions { problem, control, .. } = *self.questions;
        let watch = |progress: PackingProgress| {
            if let PackingPhase::FirstFit(_) = progress.phase {
                self.placed[lane].store(progress.done, Ordering::Relaxed);
                let done = self.placed.iter().map(|placed| placed.load(Ordering::Relaxed)).sum();
                (control.watch)(PackingProgress { done, total: self.total, ..progress });
            }
        };
        let control = PackingControl { watch: &watch, ..*control };
        let mut questions = PackingQuestions { procedure, problem, control: &control, asked: 0 };
        let (mut filled, interruption) = fill(&mut questions, self.parts[lane], self.rule);
        let has_room = interruption.is_none() && filled.servers.len() < self.rule.servers;
        let last = if has_room { filled.servers.pop() } else { None }.into_iter().collect();
        FilledLane { filled, last, interruption, asked: questions.asked }
    }

    /// Joins the servers of all lanes in order, up to the number available.
    fn joined(self) -> FilledLane {
        let mut joined = FilledLane::default();
        for lane in self.done.into_inner().expect("all threads have ended well").into_iter().flatten() {
            let FilledServers { servers, left_over } = &mut joined.filled;
            // Lanes beyond the available servers may be incomplete, and are not read.
            let room = self.rule.servers - servers.len();
            if room > 0 {
                joined.asked += lane.asked;
            }
            let mut of_lane = lane.filled.servers;
            left_over.extend(of_lane.split_off(room.min(of_lane.len())).into_iter().flatten());
            servers.extend(of_lane);
            left_over.extend(lane.filled.left_over);
            joined.last.extend(lane.last);
            joined.interruption = joined.interruption.or(lane.interruption);
        }
        joined
    }
}
