//! Decisions on renewals: a workload keeps its place and its SLO, and is promised it for what its clients really send.
//!
//! **Larger**, by default: the promise then covers what it did, and the live traffic. Until hosts have confirmed, the old
//! promise stands, and each state on the way keeps it. **Giving back**, on demand: the promise covers the live traffic
//! alone, from the decision on; hosts shrink their limits after that. A renewal does only one of these, so that at
//! every instant one of both promises contains the other, and the smaller is kept throughout.
//!
//! The limits of all workloads of the server are chosen again, as at an admission: the others keep their SLOs, or the
//! answer is no and nothing changes.

use crate::command::{CommandError, GIVE_BACK_OBSERVED_MIN, RenewalRequest};
use crate::event::{Event, NetworkEnforcement, Renewal, RequestRecord, ServerChange};
use crate::observed::live_limits::{duration, percent};
use crate::observed::{LiveLimit, NormalisedCurves, Observations};
use crate::order::PolicyChange;
use crate::state::{ClusterState, WorkloadState};
use model::{Policy, Stage, StageLimit};
use plan::standing::{PlanningWorkload, ServerPlan};
use std::collections::BTreeMap;
use units::Seconds;

/// A renewal that is being decided.
struct Renewing<'a> {
    id: u64,
    workload: &'a WorkloadState,
    /// Traffic that the promise is to cover.
    wanted: PlanningWorkload,
    gives_back: bool,
}

impl ClusterState {
    /// Decides on a renewal.
    ///
    /// # Errors
    /// If there is no such workload, or an earlier renewal of it is on its way.
    pub(crate) fn decide_renewal(
        &self,
        observations: &Observations,
        asked: &RenewalRequest,
    ) -> Result<Event, CommandError> {
        let RenewalRequest { tenant, name, .. } = asked;
        let (id, workload) = self
            .find(tenant, name)
            .ok_or_else(|| CommandError::Unknown(format!("tenant '{tenant}' has no workload '{name}'")))?;
        if workload.renewal.is_some() {
            let full = workload.request.full_name();
            let reason = format!("hosts have not confirmed the last renewal of '{full}'; ask again later");
            return Err(CommandError::Conflict(reason));
        }
        let request = RequestRecord { key: asked.key.clone(), ..workload.request.clone() };
        let live = observations.live_curves(self, id, workload, asked.now);
        let decided = match &live {
            None => Err(
                "nothing was seen of what it sends: proxies report it after some 20 s, and a restart of the \
                 controller forgets it"
                    .to_owned(),
            ),
            Some(live) => self.renewal(id, workload, live, asked),
        };
        Ok(match decided {
            Ok(renewal) => Event::WorkloadRenewed(Box::new(Renewal { request, ..renewal })),
            Err(reason) => Event::RenewalRefused { request, reason },
        })
    }

    /// Decides on a renewal of a workload whose traffic was seen.
    ///
    /// # Errors
    /// The reason of the refusal.
    fn renewal(
        &self,
        id: u64,
        workload: &WorkloadState,
        live: &NormalisedCurves,
        asked: &RenewalRequest,
    ) -> Result<Renewal, String> {
        let observed = live.observed();
        let seen_s = duration(observed.as_secs());
        if observed < asked.observed_min {
            let least = duration(asked.observed_min.as_secs());
            return Err(format!(
                "it was observed for {seen_s}, and less than {least} is too little: what it sends at other times was not \
                 seen"
            ));
        }
        let footprint = live.footprint().ok_or(
            "its proxy is of an earlier version, which does not tell its largest request: restart it with this one",
        )?;
        let kind = &self.kinds[&self.servers[&workload.server].class];
        let name = workload.request.full_name();
        let seen = kind.workload(&name, workload.slo, &footprint);
        let wanted = self.wanted(workload, seen, live, asked.gives_back)?;
        self.check_agent(&self.servers[&workload.server].host, Some(&workload.server))?;
        let renewing = Renewing { id, workload, wanted, gives_back: asked.gives_back };
        let plan = self.renewed_plan(&renewing)?;
        let change = self.renewed_change(&renewing, &plan)?;
        let derivation = plan.derivation(&name).expect("it is a member of the plan");
        let before = self.limits(workload).unwrap_or_default();
        let mut reason = format!(
            "{} in {seen_s}; {}",
            units::plural(live.requests(), "request"),
            changes(before, limits_in(&plan.policy, &name))
        );
        if observed < GIVE_BACK_OBSERVED_MIN {
            reason += "; what it sends at other times was not seen";
        }
        Ok(Renewal {
            workload: id,
            request: workload.request.clone(),
            gives_back: asked.gives_back,
            footprint,
            reason,
            bound_s: derivation.bound_s,
            derivation: serde_json::to_value(&derivation).expect("a derivation is plain data"),
            change,
        })
    }

    /// Returns the traffic that a renewed promise covers.
    ///
    /// # Errors
    /// If the promise covers it already, or gives back what is needed.
    fn wanted(
        &self,
        workload: &WorkloadState,
        seen: PlanningWorkload,
        live: &NormalisedCurves,
        gives_back: bool,
    ) -> Result<PlanningWorkload, String> {
        let promised = &workload.planning;
        let covers_all = promised.covers(&seen);
        let seen_s = duration(live.observed().as_secs());
        if !gives_back {
            let unused = || {
                let limits = self.limits(workload).unwrap_or_default().iter();
                let unused = limits.filter_map(|limit| LiveLimit::new(limit, live).unused());
                unused.collect::<Vec<_>>().join("; ")
            };
            return if covers_all {
                Err(format!(
                    "its promise covers all that it sent in {seen_s}; not used: {}; --give-back gives it back",
                    unused()
                ))
            } else {
                Ok(promised.join(&seen))
            };
        }
        if !covers_all {
            return Err(format!(
                "in {seen_s} it sent more than its promise covers: renew it without giving back first"
            ));
        }
        if seen.covers(promised) {
            return Err(format!(
                "it sent all that its promise covers in {seen_s}: there is nothing to give back"
            ));
        }
        Ok(seen)
    }

    /// Chooses limits for the server of a workload with what it wants.
    ///
    /// # Errors
    /// The reason why there are none, with remedies.
    fn renewed_plan(&self, renewing: &Renewing<'_>) -> Result<ServerPlan, String> {
        let Renewing { id, workload, wanted, .. } = renewing;
        let server = &self.servers[&workload.server];
        let kind = &self.kinds[&server.class];
        let mut all = Vec::new();
        let mut others = Vec::new();
        for member in &server.chain.latest().members {
            if member == id {
                all.push(wanted);
            } else {
                let planning = &self.workloads[member].planning;
                all.push(planning);
                others.push(planning);
            }
        }
        kind.fit(&workload.server, &all)
            .map_err(|_| kind.refusal(1, (workload.server.as_str(), others.as_slice()), wanted))
    }

    /// Returns the change to a plan, in an order in which every state keeps all promises.
    ///
    /// # Errors
    /// If there is none.
    fn renewed_change(&self, renewing: &Renewing<'_>, plan: &ServerPlan) -> Result<ServerChange, String> {
        let Renewing { id, workload, wanted, gives_back } = renewing;
        let server = &self.servers[&workload.server];
        let latest = server.chain.latest();
        let is_by_agents = self.network() == NetworkEnforcement::Agents;
        let mut workloads = BTreeMap::new();
        for member in &latest.members {
            let is_own = member == id;
            // On the way the smaller promise is kept, which the larger contains.
            let planning = if is_own && *gives_back { wanted } else { &self.workloads[member].planning };
            let client = self.client_host(*member).filter(|_| is_by_agents);
            workloads.insert(planning.name.as_str(), (planning, client));
        }
        let hosts = self.hosts_of(&workload.server, latest.members.iter().copied());
        let change = PolicyChange {
            kind: &self.kinds[&server.class],
            old: &latest.policy,
            new: &plan.policy,
            server_host: &server.host,
            has_links: is_by_agents,
            workloads,
        };
        let order = change.order(&hosts)?;
        Ok(ServerChange { server: workload.server.clone(), policy: plan.policy.clone(), order })
    }
}

fn limits_in<'a>(policy: &'a Policy, name: &str) -> &'a [StageLimit] {
    let found = policy.workloads.iter().find(|workload| workload.name == name);
    found.map_or(&[], |workload| &workload.limits)
}

/// Says how the limits of a workload change.
fn changes(before: &[StageLimit], after: &[StageLimit]) -> String {
    let words =
        |limit: &StageLimit| format!("{} and {}", percent(limit.limit.rate), Seconds(limit.limit.burst));
    let mut changes = Vec::new();
    for stage in Stage::ALL {
        let of = |limits: &[StageLimit]| limits.iter().find(|limit| limit.stage == stage).map(words);
        let old = of(before);
        let new = of(after);
        if old != new {
            let word = |limit: Option<String>| limit.unwrap_or_else(|| "no limit".to_owned());
            changes.push(format!("{stage}: {} instead of {}", word(new), word(old)));
        }
    }
    if changes.is_empty() { "its limits stay as they are".to_owned() } else { changes.join("; ") }
}
