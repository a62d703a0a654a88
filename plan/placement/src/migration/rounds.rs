//! The search for rounds of moves, greedy: the largest first, each with the fastest copy that fits.

use super::change::{ChangeRefusal, restricted, states_between, verify_change};
use super::{
    CopyEnd, CopyPriority, CopyTerms, Migration, MigrationProblem, MigrationRefusal, MigrationStep,
    MovingWorkload, StepPurpose, StuckReason,
};
use crate::limits::{FitRefusal, LimitMethod};
use crate::problem::{PlanningProblem, PlanningWorkload};
use crate::server::PlannedServer;
use calculus::ArrivalCurve;
use model::{PerStage, RateLimit, Stage};
use std::collections::{BTreeMap, BTreeSet};

/// Finds steps from the servers as they are to the servers as they are wanted.
///
/// # Errors
/// If none are found that keep all promises. Others may exist: the search is greedy.
///
/// # Panics
/// If a state of a step breaks what is promised in it, which is a bug of the search.
pub fn migrate(problem: &MigrationProblem<'_>) -> Result<Migration, MigrationRefusal> {
    let mut search = Search::new(problem);
    let broken_before = search.promised.iter().enumerate().filter(|(_, promised)| !**promised);
    let broken_before: Vec<usize> = broken_before.map(|(workload, _)| workload).collect();
    let broken_before = broken_before.into_iter().filter(|&w| search.is_placed(w)).collect();
    while !search.waiting.is_empty() {
        if let Err(reason) = search.next_round() {
            search.take_detour().map_err(|()| search.stuck(reason))?;
        }
    }
    search.settle()?;
    let migration = Migration { steps: search.steps, workloads: search.workloads, broken_before };
    Ok(migration)
}

/// Rates at which a copy may join others: at a lower one, it waits for a round of its own.
const SHARED_RATES: usize = 3;

/// Workloads that move at one time from a server to another.
#[derive(Debug, Clone)]
struct Unit {
    workloads: Vec<usize>,
    from: usize,
    to: usize,
    bytes: u64,
    has_taken_detour: bool,
}

struct Search<'a> {
    problem: &'a MigrationProblem<'a>,
    /// Workloads of the problem, and the traffic of copies.
    workloads: Vec<PlanningWorkload>,
    /// The servers as they are after the steps so far.
    current: Vec<PlannedServer>,
    /// Units that have not reached their server, the largest first.
    waiting: Vec<Unit>,
    /// True for workloads whose SLO holds.
    promised: Vec<bool>,
    /// True if the servers kept all rules from the beginning.
    has_rules: bool,
    steps: Vec<MigrationStep>,
}

/// Decisions of a round.
#[derive(Debug, Clone, Default)]
struct Round {
    /// Positions of units among those that wait.
    units: Vec<usize>,
    moves: Vec<MovingWorkload>,
    /// The state of each server that changes, while data is copied and room is left.
    states: BTreeMap<usize, RoundState>,
}

#[derive(Debug, Clone)]
struct RoundState {
    /// Workloads to come and the traffic of copies.
    joining: Vec<usize>,
    /// Limits that lead from the present ones to those of the round.
    between: Vec<PlannedServer>,
    /// The server with all of its workloads, and with those that join.
    fitted: PlannedServer,
}

impl<'a> Search<'a> {
    fn new(problem: &'a MigrationProblem<'a>) -> Self {
        let workloads = problem.instance.workloads.clone();
        let current: Vec<PlannedServer> =
            problem.servers.iter().map(|server| server.before.clone()).collect();
        let mut promised = vec![false; workloads.len()];
        for server in &current {
            for &workload in &server.members {
                promised[workload] = server.verify_promises(problem.instance, |it| it == workload).is_ok();
            }
        }
        let members: Vec<Vec<usize>> = current.iter().map(|server| server.members.clone()).collect();
        let has_rules = (problem.keeps_rules)(&members);
        let waiting = units(problem);
        Self { problem, workloads, current, waiting, promised, has_rules, steps: Vec::new() }
    }

    fn is_placed(&self, workload: usize) -> bool {
        self.problem.servers.iter().any(|server| server.before.members.contains(&workload))
    }

    /// Adds the steps of a round in which as many units move as fit at the same time.
    ///
    /// # Errors
    /// If none fits: why the first one does not.
    fn next_round(&mut self) -> Result<(), StuckReason> {
        let mut round = Round::default();
        let mut first = None;
        for unit in 0..self.waiting.len() {
            match self.with_unit(&round, unit) {
                Ok(extended) => round = extended,
                Err(reason) => first = first.or(Some(reason)),
            }
        }
        match first {
            Some(reason) if round.units.is_empty() => Err(reason),
            _ => {
                self.carry_out(round);
                Ok(())
            }
        }
    }

    /// The round with one more unit, its data copied at the highest rate that fits.
    fn with_unit(&mut self, round: &Round, unit: usize) -> Result<Round, StuckReason> {
        let Unit { from, to, .. } = self.waiting[unit];
        self.check_capacity(round, unit)?;
        self.check_rules(round, unit)?;
        let copies_before = self.workloads.len();
        let mut reason = StuckReason::NoRoom { server: to };
        let rates = self.problem.copies.rates();
        for rate in 0..if round.units.is_empty() { rates } else { rates.min(SHARED_RATES) } {
            for is_below in [true, false] {
                let mut extended = round.clone();
                let moves = self.copies_of(unit, rate, is_below);
                let reading = moves.iter().map(|it| it.copies[0]).collect();
                let writing = moves.iter().flat_map(|it| [it.workload, it.copies[1]]).collect();
                extended.units.push(unit);
                extended.moves.extend(moves);
                let added = self
                    .join(&mut extended, from, reading)
                    .and_then(|()| self.join(&mut extended, to, writing));
                match added {
                    Ok(()) => return Ok(extended),
                    Err(found) => reason = found,
                }
                self.workloads.truncate(copies_before);
                self.promised.truncate(copies_before);
            }
        }
        Err(reason)
    }

    /// Adds the traffic of the copies of a unit to the workloads.
    fn copies_of(&mut self, unit: usize, rate: usize, is_below: bool) -> Vec<MovingWorkload> {
        let Unit { ref workloads, from, to, .. } = self.waiting[unit];
        let mut moves = Vec::new();
        for workload in workloads.clone() {
            let number = self.copies_so_far(workload);
            let copies = [(CopyEnd::Read, from), (CopyEnd::Write, to)].map(|(end, server)| {
                let priority = match self.longest_slo(server) {
                    Some(longest) if !is_below => CopyPriority::With(longest),
                    longest => CopyPriority::Below(longest.unwrap_or(0.0)),
                };
                let terms = CopyTerms { end, rate, number, priority };
                self.workloads.push(self.problem.copies.traffic(workload, terms));
                self.promised.push(true);
                self.workloads.len() - 1
            });
            moves.push(MovingWorkload { workload, from, to, rate, copies });
        }
        moves
    }

    /// The number of times that a workload has been copied in the steps so far.
    fn copies_so_far(&self, workload: usize) -> usize {
        let moves = self.steps.iter().flat_map(|step| match &step.purpose {
            StepPurpose::Copy(moves) => moves.as_slice(),
            _ => &[],
        });
        moves.filter(|it| it.workload == workload).count()
    }

    /// The longest latency that an SLO of a server's workloads allows, seconds.
    fn longest_slo(&self, server: usize) -> Option<f64> {
        let PlannedServer { class, members, .. } = &self.current[server];
        let slos = members.iter().map(|&w| self.problem.instance.latency_asked(w, *class));
        slos.reduce(f64::max)
    }

    /// Adds workloads to what a server has during a round.
    fn join(&self, round: &mut Round, server: usize, more: Vec<usize>) -> Result<(), StuckReason> {
        let mut joining = round.states.get(&server).map_or_else(Vec::new, |state| state.joining.clone());
        joining.extend(more);
        let present = &self.current[server];
        let all: Vec<usize> = present.members.iter().chain(&joining).copied().collect();
        let local = self.local(present.class, all);
        let fitted =
            local.fit(self.problem.instance.workloads.len()).ok_or(StuckReason::NoRoom { server })?;
        let state = RoundState { joining, between: Vec::new(), fitted };
        let [copying, switched] = self.phases(&round.moves, server, &state);
        let unreachable = |reason| StuckReason::Unreachable { server, reason };
        let between = self.between(&local, present, &copying).map_err(unreachable)?;
        // Enforcers have few priorities: without some of its workloads, others may be merged.
        let both = |w: usize| copying.members.contains(&w) && switched.members.contains(&w);
        local.verify_change(&copying, &switched, &both).map_err(unreachable)?;
        round.states.insert(server, RoundState { between, ..state });
        Ok(())
    }

    /// The states of a server while data is copied and after clients have switched. In the first, room is left for the
    /// workloads to come, but they are not there.
    fn phases(&self, moves: &[MovingWorkload], server: usize, state: &RoundState) -> [PlannedServer; 2] {
        let present = &self.current[server].members;
        let is_copying = |w: usize| present.contains(&w) || moves.iter().any(|it| it.copies.contains(&w));
        let is_there_then = |w: usize| {
            let leaves =
                |it: &MovingWorkload| it.copies.contains(&w) || (it.workload == w && it.from == server);
            !moves.iter().any(leaves)
        };
        [restricted(&state.fitted, &is_copying), restricted(&state.fitted, &is_there_then)]
    }

    /// Returns the states of a server through which its enforcers get from one state to another.
    fn between(
        &self,
        local: &LocalProblem,
        old: &PlannedServer,
        new: &PlannedServer,
    ) -> Result<Vec<PlannedServer>, ChangeRefusal> {
        let check = |one: &PlannedServer, other: &PlannedServer| {
            let both = |member: usize| {
                self.promised[local.ids[member]]
                    && one.members.contains(&member)
                    && other.members.contains(&member)
            };
            verify_change(&local.problem, one, other, &both)
        };
        let [old, new] = [old, new].map(|state| local.renumbered(state));
        let states = states_between(&local.problem, &check, &old, &new)?;
        Ok(states.into_iter().map(|state| local.numbered_back(state)).collect())
    }

    /// Checks that all data fits on the server that a unit goes to, with that of those which have not left.
    fn check_capacity(&self, round: &Round, unit: usize) -> Result<(), StuckReason> {
        let Unit { to, .. } = self.waiting[unit];
        let Some(capacity) = self.problem.servers[to].capacity else { return Ok(()) };
        let coming = round.units.iter().chain([&unit]).map(|&unit| &self.waiting[unit]);
        let coming: u64 = coming.filter(|unit| unit.to == to).map(|unit| unit.bytes).sum();
        let there: u64 = self.current[to].members.iter().map(|&w| self.problem.bytes[w]).sum();
        match there.saturating_add(coming) <= capacity {
            true => Ok(()),
            false => Err(StuckReason::NoCapacity { server: to }),
        }
    }

    /// Checks that the servers keep all rules once the units of a round and another one have moved.
    fn check_rules(&self, round: &Round, unit: usize) -> Result<(), StuckReason> {
        let mut members: Vec<Vec<usize>> = self.current.iter().map(|server| server.members.clone()).collect();
        for &unit in round.units.iter().chain([&unit]) {
            let Unit { workloads, from, to, .. } = &self.waiting[unit];
            members[*from].retain(|member| !workloads.contains(member));
            members[*to].extend(workloads);
        }
        if !self.has_rules || (self.problem.keeps_rules)(&members) { Ok(()) } else { Err(StuckReason::Rule) }
    }

    /// Appends the steps of a round.
    fn carry_out(&mut self, round: Round) {
        let Round { units, moves, states } = round;
        let between = states.iter().map(|(&server, state)| (server, state.between.as_slice())).collect();
        self.make_room(&between);
        let mut copying = self.current.clone();
        let mut switched = self.current.clone();
        let mut holding: Vec<usize> = Vec::new();
        for (&server, state) in &states {
            [copying[server], switched[server]] = self.phases(&moves, server, state);
            holding.extend(&state.fitted.members);
        }
        self.add_step(StepPurpose::Copy(moves.clone()), copying);
        // Limits have been chosen for what these workloads send now.
        holding.into_iter().for_each(|w| self.promised[w] = true);
        self.add_step(StepPurpose::Switch(moves), switched);
        let mut position = 0..;
        self.waiting.retain(|_| !units.contains(&position.next().expect("there are more numbers")));
    }

    /// Appends steps by which servers go through these states.
    fn make_room(&mut self, between: &BTreeMap<usize, &[PlannedServer]>) {
        let steps = between.values().map(|states| states.len()).max().unwrap_or(0);
        for step in 0..steps {
            let mut servers = self.current.clone();
            for (&server, states) in between {
                if let Some(state) = states.get(step) {
                    servers[server] = state.clone();
                }
            }
            self.add_step(StepPurpose::MakeRoom, servers);
        }
    }

    /// Appends a step, unless it changes nothing.
    fn add_step(&mut self, purpose: StepPurpose, servers: Vec<PlannedServer>) {
        if servers == self.current {
            return;
        }
        for (server, (old, new)) in self.current.iter().zip(&servers).enumerate() {
            if old == new {
                continue;
            }
            let all: BTreeSet<usize> = old.members.iter().chain(&new.members).copied().collect();
            let local = self.local(new.class, all.into_iter().collect());
            let kept = |w: usize| self.promised[w] && new.members.contains(&w);
            if let Err(broken) = local.verify(new, &kept) {
                panic!("a step breaks a promise on its server {server}: {broken:?}");
            }
            let both = |w: usize| kept(w) && old.members.contains(&w);
            if let Err(broken) = local.verify_change(old, new, &both) {
                panic!("a promise may break on the way to a step on its server {server}: {broken:?}");
            }
        }
        self.current.clone_from(&servers);
        self.steps.push(MigrationStep { purpose, servers });
    }

    /// Sends a unit that waits to a server without workloads, and from there to its own.
    fn take_detour(&mut self) -> Result<(), ()> {
        let empty = |server: &usize| {
            let is_wanted = self.waiting.iter().any(|unit| unit.to == *server);
            self.current[*server].members.is_empty() && !is_wanted
        };
        let spares: Vec<usize> = (0..self.current.len()).filter(empty).collect();
        for unit in (0..self.waiting.len()).rev() {
            if self.waiting[unit].has_taken_detour {
                continue;
            }
            for &spare in &spares {
                let before = self.waiting[unit].clone();
                self.waiting[unit].to = spare;
                if let Ok(round) = self.with_unit(&Round::default(), unit) {
                    self.carry_out(round);
                    self.waiting.insert(unit, Unit { from: spare, has_taken_detour: true, ..before });
                    return Ok(());
                }
                self.waiting[unit] = before;
            }
        }
        Err(())
    }

    fn stuck(&self, reason: StuckReason) -> MigrationRefusal {
        let mut remaining = Vec::new();
        for Unit { workloads, from, to, .. } in &self.waiting {
            remaining.extend(workloads.iter().map(|&workload| (workload, *from, *to)));
        }
        MigrationRefusal::Stuck { remaining, reason }
    }

    /// Appends the steps to the limits that are wanted.
    fn settle(&mut self) -> Result<(), MigrationRefusal> {
        let mut between = BTreeMap::new();
        let after: Vec<PlannedServer> =
            self.problem.servers.iter().map(|server| server.after.clone()).collect();
        for (server, wanted) in after.iter().enumerate() {
            let present = &self.current[server];
            let all: BTreeSet<usize> = present.members.iter().chain(&wanted.members).copied().collect();
            let local = self.local(wanted.class, all.into_iter().collect());
            let found = self.between(&local, present, wanted);
            let found = found.map_err(|reason| MigrationRefusal::Unreachable { server, reason })?;
            between.insert(server, found);
        }
        self.make_room(&between.iter().map(|(&server, states)| (server, states.as_slice())).collect());
        self.add_step(StepPurpose::Settle, after);
        Ok(())
    }

    /// The problem of one server of a class with these workloads.
    fn local(&self, class: usize, ids: Vec<usize>) -> LocalProblem {
        let instance = self.problem.instance;
        let mut workloads = Vec::new();
        let mut further = Vec::new();
        for &id in &ids {
            let PlanningWorkload { name, slo, on_class } = &self.workloads[id];
            workloads.push(PlanningWorkload {
                name: name.clone(),
                slo: *slo,
                on_class: vec![on_class[class].clone()],
            });
            let mut slos = instance.further_slos(id).to_vec();
            slos.iter_mut().for_each(|slo| slo.shorter_by = vec![slo.shorter_by[class]]);
            further.push(slos);
        }
        let classes = vec![instance.classes[class].clone()];
        let problem = PlanningProblem::new(classes, workloads, instance.max_rate, instance.slo_factor);
        let problem = problem.expect("names of workloads are unique").with_further_slos(further);
        LocalProblem { problem, ids, class }
    }
}

/// The problem of one server, whose workloads have other indices there.
struct LocalProblem {
    problem: PlanningProblem,
    /// Index of each workload in the whole problem.
    ids: Vec<usize>,
    class: usize,
}

impl LocalProblem {
    /// A server with limits for all workloads, of which those from the index `first_copy` on are the traffic of copies; `None`
    /// if they do not fit.
    fn fit(&self, first_copy: usize) -> Option<PlannedServer> {
        let everybody: Vec<usize> = (0..self.ids.len()).collect();
        let beside_copies = self.fit_beside_copies(first_copy);
        let fitted = beside_copies.or_else(|| LimitMethod::Exact.fit(&self.problem, 0, everybody).ok())?;
        Some(self.numbered_back(fitted))
    }

    /// A server on which copies have the rate that they need and no more, and the others the limits that are best in what is
    /// left of the rates; `None` if not all promises hold then.
    fn fit_beside_copies(&self, first_copy: usize) -> Option<PlannedServer> {
        let (copies, others): (Vec<usize>, Vec<usize>) =
            (0..self.ids.len()).partition(|&member| self.ids[member] >= first_copy);
        let rate = |stage: Stage| -> f64 {
            copies.iter().map(|&copy| self.curves(copy)[stage].sustained_rate()).sum()
        };
        let taken = Stage::ALL.map(rate).into_iter().fold(0.0, f64::max);
        if others.is_empty() || copies.is_empty() || taken >= self.problem.max_rate {
            return None;
        }
        let mut beside = self.problem.subset(&others);
        beside.max_rate -= taken;
        let fitted = LimitMethod::Exact.fit(&beside, 0, (0..others.len()).collect()).ok()?;
        let limits =
            (0..self.ids.len()).map(|member| match others.iter().position(|&other| other == member) {
                Some(position) => *fitted.limits_of(position),
                None => PerStage::from_fn(|stage| {
                    let rate = self.curves(member)[stage].sustained_rate();
                    RateLimit { rate, burst: self.curves(member)[stage].burst(rate) }
                }),
            });
        let members = (0..self.ids.len()).collect();
        let server = PlannedServer::with_limits(&self.problem, 0, members, limits.collect());
        server.verify(&self.problem).is_ok().then(|| server.with_longest_queue(&self.problem))
    }

    /// The curves of a workload by stage.
    fn curves(&self, member: usize) -> &PerStage<ArrivalCurve> {
        &self.problem.workloads[member].on_class[0].curves
    }

    /// The server with the indices of the whole problem.
    fn numbered_back(&self, server: PlannedServer) -> PlannedServer {
        let members = server.members.iter().map(|&member| self.ids[member]).collect();
        PlannedServer { class: self.class, members, ..server }
    }

    fn verify(&self, server: &PlannedServer, is_promised: &dyn Fn(usize) -> bool) -> Result<(), FitRefusal> {
        self.renumbered(server).verify_promises(&self.problem, |member| is_promised(self.ids[member]))
    }

    fn verify_change(
        &self,
        old: &PlannedServer,
        new: &PlannedServer,
        is_promised: &dyn Fn(usize) -> bool,
    ) -> Result<(), ChangeRefusal> {
        let is_promised = |member: usize| is_promised(self.ids[member]);
        verify_change(&self.problem, &self.renumbered(old), &self.renumbered(new), &is_promised)
    }

    /// The server with the indices of this problem.
    fn renumbered(&self, server: &PlannedServer) -> PlannedServer {
        let position = |workload: &usize| self.ids.iter().position(|id| id == workload);
        let members = server.members.iter().map(|w| position(w).expect("it is one of them")).collect();
        PlannedServer { class: 0, members, ..server.clone() }
    }
}

/// Workloads that move together, the largest first; equal ones in the order of the problem.
fn units(problem: &MigrationProblem<'_>) -> Vec<Unit> {
    let mut home: BTreeMap<usize, usize> = BTreeMap::new();
    for (position, server) in problem.servers.iter().enumerate() {
        home.extend(server.before.members.iter().map(|&workload| (workload, position)));
    }
    let mut units: Vec<Unit> = Vec::new();
    let mut moving: Vec<(usize, usize, usize)> = Vec::new();
    for (to, server) in problem.servers.iter().enumerate() {
        for &workload in &server.after.members {
            if let Some(&from) = home.get(&workload).filter(|&&from| from != to) {
                moving.push((workload, from, to));
            }
        }
    }
    moving.sort_unstable();
    for (workload, from, to) in moving {
        let bytes = problem.bytes[workload];
        let group = problem.together[workload];
        let is_with = |unit: &&mut Unit| {
            let same_way = (unit.from, unit.to) == (from, to);
            same_way && group.is_some() && problem.together[unit.workloads[0]] == group
        };
        match units.iter_mut().find(is_with) {
            Some(unit) => {
                unit.workloads.push(workload);
                unit.bytes = unit.bytes.saturating_add(bytes);
            }
            None => {
                units.push(Unit { workloads: vec![workload], from, to, bytes, has_taken_detour: false });
            }
        }
    }
    units.sort_by_key(|unit| std::cmp::Reverse(unit.bytes));
    units
}
