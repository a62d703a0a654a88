//! The agents of a world: their steps, which take time, and their ends.

use super::super::mistake::Mistake;
use super::{Fault, Happening, MS, Message, S, World};
use agent::{
    Abilities, AgentAnswer, AgentMachine, AgentMemory, AgentMode, AgentStep, Assignment, EnforceError,
    ServerObservation,
};
use rand::RngExt as _;

impl World {
    pub(super) fn abilities(&self, host: usize) -> Abilities {
        Abilities { storage: self.hosts[host].servers.clone(), network: true }
    }

    pub(super) fn host_starts(&mut self, host: usize) -> Result<(), String> {
        let abilities = self.abilities(host);
        let own = &mut self.hosts[host];
        own.life += 1;
        if self.mistake == Some(Mistake::ForgetsAtRestart) && own.life > 1 {
            own.enforced = None;
            own.links = None;
        }
        let (agent, step) = AgentMachine::start(AgentMode::Applying, own.disk.clone(), abilities);
        own.agent = Some(agent);
        self.begin(host, step);
        self.judge_now()
    }

    pub(super) fn agent_crashes(&mut self, host: usize) -> bool {
        let crashes = self.fails(0.004);
        if crashes {
            self.count(Fault::AgentCrash);
            if self.fails(0.15) {
                // Its enforcers keep what they have.
                self.count(Fault::AgentDiskLost);
                self.hosts[host].disk = AgentMemory::default();
            }
            self.hosts[host].agent = None;
            self.hosts[host].life += 1;
            let down = self.dice.random_range(MS..3 * S);
            self.after(down, Happening::HostStarts { host });
        }
        crashes
    }

    /// Begins a step of a host's agent.
    pub(super) fn begin(&mut self, host: usize, step: AgentStep) {
        let life = self.hosts[host].life;
        let delay = match &step {
            AgentStep::Save(_) => self.dice.random_range(MS..10 * MS),
            AgentStep::Enforce(_) => self.dice.random_range(MS..60 * MS),
            AgentStep::Advise(_) | AgentStep::Stop(_) => MS,
            AgentStep::Report(report) => {
                self.hosts[host].round += 1;
                let round = self.hosts[host].round;
                let mut report = Box::new(report.clone());
                self.hosts[host].step = Some(step);
                let (observations, proxies) = self.observations(host);
                report.observations = observations;
                let report = Message::Report { host, life, round, report, proxies };
                self.send(Some(host), Happening::ToController(report));
                self.after(S, Happening::NoAnswer { host, life, round });
                return;
            }
        };
        self.hosts[host].step = Some(step);
        self.after(delay, Happening::StepEnds { host, life });
    }

    /// Lets the proxies of a host serve requests and restart, and returns their counters with their lives.
    fn observations(&mut self, host: usize) -> (Vec<ServerObservation>, Vec<u64>) {
        let mut observations = Vec::new();
        let mut lives = Vec::new();
        let policies = self.hosts[host].enforced.iter().flat_map(|assignment| assignment.servers.clone());
        for part in policies.collect::<Vec<_>>() {
            if !self.hosts[host].proxies.contains_key(&part.server) {
                continue;
            }
            for restarts in [false, self.has_faults() && self.traffic_dice.random_bool(0.05)] {
                if restarts {
                    self.count(Fault::ProxyRestart);
                }
                let proxy = self.hosts[host].proxies.get_mut(&part.server).expect("it is there");
                if restarts {
                    proxy.restart();
                }
                for workload in &part.policy.workloads {
                    let scale = traffic_scale(&workload.name);
                    proxy.serve(&workload.name, self.traffic_dice.random_range(0..50), scale, self.now);
                }
            }
            let own = &mut self.hosts[host];
            let agent = own.agent.as_ref().expect("it reports");
            let proxy = own.proxies.get_mut(&part.server).expect("it is there");
            let mut curves = proxy.curves(self.now, agent.curves_known(&part.server));
            if self.mistake == Some(Mistake::LosesChunks)
                && let Some(report) = &mut curves
                && report.chunks.len() > 1
            {
                report.chunks.remove(0);
            }
            let life = if self.mistake == Some(Mistake::KeepsCountersIdentity) { 0 } else { proxy.life };
            let counters = format!("{}-{life}", part.server);
            let workloads = proxy.workloads.values().cloned().collect();
            lives.push(proxy.life);
            let server = part.server;
            let observation = ServerObservation { server, counters, workloads, curves, ..Default::default() };
            observations.push(observation);
        }
        (observations, lives)
    }

    pub(super) fn step_ends(&mut self, host: usize) -> Result<(), String> {
        if self.agent_crashes(host) {
            return Ok(());
        }
        let step = self.hosts[host].step.take().expect("a step is under way");
        let next = match step {
            AgentStep::Save(memory) => {
                self.hosts[host].disk = memory;
                if self.agent_crashes(host) {
                    return Ok(());
                }
                self.hosts[host].agent.as_mut().expect("it runs").saved()
            }
            AgentStep::Enforce(assignment) => {
                let own = &self.hosts[host];
                let is_new =
                    [&own.enforced, &own.links].into_iter().any(|it| it.as_ref() != Some(&assignment));
                let outcome = if is_new && self.fails(0.03) {
                    self.count(Fault::PolicyRefused);
                    if self.dice.random_bool(0.5) {
                        self.links_change(host, &assignment)?;
                        // The proxies refuse, and the links get back what they had.
                        let own = &mut self.hosts[host];
                        own.links.clone_from(&own.enforced);
                        self.judge_now()?;
                    }
                    Err(EnforceError::Refused("a simulated refusal".to_owned()))
                } else if self.fails(0.01) {
                    self.count(Fault::EnforcerDown);
                    // It may have taken the assignment, or half of it, before it ended.
                    if self.dice.random_bool(0.5) {
                        self.links_change(host, &assignment)?;
                    }
                    if self.dice.random_bool(0.5) {
                        self.hosts[host].take(&assignment);
                        self.judge_now()?;
                    }
                    Err(EnforceError::Unavailable("a simulated end".to_owned()))
                } else if is_new && self.mistake == Some(Mistake::ReportsTooSoon) {
                    let delay = self.dice.random_range(S / 10..2 * S);
                    self.after(delay, Happening::LateEnforcement { host, assignment: Box::new(assignment) });
                    Ok(())
                } else {
                    self.links_change(host, &assignment)?;
                    if self.agent_crashes(host) {
                        return Ok(());
                    }
                    self.hosts[host].take(&assignment);
                    self.judge_now()?;
                    Ok(())
                };
                if self.agent_crashes(host) {
                    return Ok(());
                }
                self.hosts[host].agent.as_mut().expect("it runs").enforced(outcome)
            }
            step => return Err(format!("an agent that applies does {step:?}")),
        };
        self.begin(host, next);
        Ok(())
    }

    /// Gives a host's links an assignment before its proxies get it.
    fn links_change(&mut self, host: usize, assignment: &Assignment) -> Result<(), String> {
        if assignment.network {
            self.hosts[host].links = Some(assignment.clone());
            self.judge_now()?;
        }
        Ok(())
    }

    pub(super) fn awaits_answer(&self, host: usize, life: u64, round: u64) -> bool {
        let own = &self.hosts[host];
        own.life == life && own.round == round && matches!(own.step, Some(AgentStep::Report(_)))
    }

    pub(super) fn host_is_answered(
        &mut self,
        host: usize,
        life: u64,
        round: u64,
        answer: AgentAnswer,
    ) -> Result<(), String> {
        if self.mistake == Some(Mistake::AppliesLateMessages)
            && let Some(assignment) = &answer.assignment
        {
            self.hosts[host].take(assignment);
            self.judge_now()?;
        }
        if self.awaits_answer(host, life, round) {
            self.answer_host(host, Some(answer));
        }
        Ok(())
    }

    pub(super) fn answer_host(&mut self, host: usize, answer: Option<AgentAnswer>) {
        let abilities = self.abilities(host);
        let next = self.hosts[host].agent.as_mut().expect("it runs").answered(answer, abilities);
        self.begin(host, next);
    }
}

/// Work of the requests of a workload: some send next to nothing, and some more than their trace.
fn traffic_scale(name: &str) -> u64 {
    const SCALES: [u64; 3] = [1, 10_000, 40_000];
    SCALES[name.bytes().map(usize::from).sum::<usize>() % SCALES.len()]
}
