//! Links of the hosts from which requests come: limits on each host, and the delays that they bound.
//!
//! A request leaves its host by a link that it shares with the requests of other workloads of the host, whatever servers
//! they go to, and its answer comes back by the link into the host. Which limits a server's links want depends on the
//! workloads of the server, and which a host's links want on those of the host. So both choose their own: a workload has
//! a token bucket for its server and one for its host, which hold at once. [`client_links`] chooses those of a host as if
//! it were a server whose network-in is the link out of the host and whose network-out is the link into it. What a
//! request may be late on them is then a constant of the workload ([`ClientLinks::delay`]), wherever it is placed. So that
//! servers have something left, limits of a host are those within the least of [`SLO_SHARES`] of all SLOs that has some.
//!
//! **Places of buckets.** Both are enforced where traffic enters the network: requests at the shaper of the host's link,
//! answers at the shaper of the server's. Traffic leaves a shaper within each of its buckets, so that the queue before the
//! next link, at a port of the switch, is filled by bursts of limits alone and served by priority, first come, first
//! served within one: Eq. 5.5 without turns.
//!
//! **No bucket loses tokens.** The argument of [`links`](crate::links) for a single bucket holds for several. Let others
//! keep the link from a workload for h at most, so that in an interval of length ℓ in which it has work and tokens it
//! sends `left·(ℓ − h)` at least, and let `b_k ≥ r_k·h` for each of its buckets k, with the sum of all rates on the link
//! at most 1. *Then its delay is at most max(h + b/left, 2h) for any of its buckets that its traffic keeps with r ≤ left.*
//! *Proof.* What it has sent until u is what had arrived until some s, and what was sent since in n + 1 intervals or fewer,
//! in which the link was what it waited for, and between them n in which a bucket was, from full to the debt that ended
//! the interval: the j-th passed `b_j + r_j·m_j`. Let r be the least rate of these n buckets and b its burst; if r > left,
//! or n = 0, take the bucket of the claim. Of intervals of the link with the length ℓ in all there are at most n + 1, so
//! that `Z = r·(ℓ − (n+1)·h) + Σ b_j + r·m` was sent, m being Σ m_j. With `b_j ≥ r·h` for the other n − 1 this is at least
//! `b + r·(ℓ + m − 2h)`, and until u − 2h there had arrived no more than `b + r·(ℓ + m − 2h)` since s. With r > left
//! each of the n intervals passed `left·(h + m_j)` at least, so `Z ≥ left·(ℓ + m − h)`, and until u − h − b/left there had
//! arrived no more than `b + left·(ℓ + m − h − b/left)`. ∎
//!
//! So a server raises the bursts of its limits at network-in to what their rates bring in the longest hold-up at the host
//! ([`ClientLinks::held_up`]); and bursts of a host's limits for answers are large enough for a hold-up of
//! [`HOLD_UP_SHARE`] of the SLO at the server, beyond which a placement is refused.
//!
//! *Assumptions*: switches serve by the marks of packets, as fast as their links; all traffic on a host's links is that of
//! its workloads or has no mark; no host or server sends packets above [`EnforcedClass::packet`], because what a bucket
//! passes beyond its burst, a packet of its shaper, waits at the next link.

use crate::client_place::{ClientLinks, ClientPlace};
use crate::limits::LimitMethod;
use crate::problem::{PlanningClass, PlanningProblem, PlanningWorkload};
use crate::server::PlannedServer;
use calculus::EnforcedClass;
use model::{LINK_BURST_S, Stage};

/// Share of a workload's SLO for which others may keep the server's link from its answers.
pub const HOLD_UP_SHARE: f64 = 0.05;

/// A host of clients and the workloads whose requests come from it.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanningHost {
    /// The name of the host; no two hosts share one.
    pub name: String,
    /// Packets and shaper of its links; without it, bounds are those of links that interrupt.
    pub enforced: Option<EnforcedClass>,
    /// Its workloads, each with its curves as fractions of the host's links: requests at network-in, answers at
    /// network-out with what may overtake them at any device, nothing at the storage. The latency of an SLO is what it
    /// leaves for links and waiting at a server.
    pub workloads: Vec<PlanningWorkload>,
}

/// Shares of the latencies within which the delays on a host's links are tried, the rest being left to servers.
const SLO_SHARES: [f64; 5] = [0.1, 0.2, 0.35, 0.6, LARGEST_SHARE];
/// The largest share: with all of it nothing could wait at a server.
const LARGEST_SHARE: f64 = 0.9;
/// Number of refused workloads of a host for which sufficient links are looked for.
const ADVISED_MAX: usize = 3;
/// Capacities that are tried for workloads which a host's links cannot serve, as factors of theirs.
const LARGER_LINKS: [f64; 12] = [1.25, 1.5, 2.0, 2.5, 4.0, 5.0, 10.0, 20.0, 40.0, 100.0, 400.0, 1000.0];

/// Chooses limits on the links of a host and returns the place of each of its workloads.
///
/// If not all of them have limits together, those that come first have.
pub fn client_links(host: &PlanningHost) -> Vec<ClientPlace> {
    if host.workloads.is_empty() {
        return Vec::new();
    }
    let mut places: Vec<Option<ClientPlace>> = vec![None; host.workloads.len()];
    let all: Vec<usize> = (0..host.workloads.len()).collect();
    let fit_all = |share: f64| {
        let problem = host.problem(share);
        let server = LimitMethod::Exact.fit(&problem, 0, all.clone()).ok()?;
        Some((problem, Some(server)))
    };
    let fitted = SLO_SHARES.into_iter().find_map(fit_all);
    let (problem, served) = fitted.unwrap_or_else(|| {
        let problem = host.problem(LARGEST_SHARE);
        let served = host.first_that_fit(&problem, &mut places);
        (problem, served)
    });
    if let Some(server) = served {
        let held_up = server.held_up(&problem, Stage::NetworkIn);
        for guarantee in server.guarantees(&problem) {
            let workload = guarantee.workload;
            let limits = server.limits_of(workload);
            let held_up = held_up.iter().find(|(member, _)| *member == workload);
            places[workload] = Some(ClientPlace::Served(ClientLinks {
                host: host.name.clone(),
                priority: guarantee.priority,
                requests: limits[Stage::NetworkIn],
                answers: limits[Stage::NetworkOut],
                overtaking: problem.overtaking(workload, 0),
                mean_rate: host.workloads[workload].on_class[0].mean_rate,
                queueing: guarantee.queueing,
                held_up: held_up.map_or(0.0, |(_, seconds)| *seconds),
                hold_up_max: problem.held_up_elsewhere(workload),
            }));
        }
    }
    places.into_iter().map(|place| place.expect("each workload was tried")).collect()
}

impl PlanningHost {
    /// Returns limits for the workloads that have some beside those before them; the others are refused.
    fn first_that_fit(
        &self,
        problem: &PlanningProblem,
        places: &mut [Option<ClientPlace>],
    ) -> Option<PlannedServer> {
        let mut served: Option<PlannedServer> = None;
        let mut advised = 0;
        for (workload, place) in places.iter_mut().enumerate() {
            let mut members = served.as_ref().map_or_else(Vec::new, |server| server.members.clone());
            members.push(workload);
            match LimitMethod::Exact.fit(problem, 0, members.clone()) {
                Ok(server) => served = Some(server),
                Err(why) => {
                    let sufficient = (advised < ADVISED_MAX).then(|| self.sufficient(&members)).flatten();
                    advised += 1;
                    let alone = members.len() == 1;
                    *place = Some(ClientPlace::Refused { host: self.name.clone(), alone, why, sufficient });
                }
            }
        }
        served
    }

    /// Returns the least of [`LARGER_LINKS`] with which these workloads have limits.
    fn sufficient(&self, members: &[usize]) -> Option<f64> {
        let is_enough = |factor: &f64| {
            let problem = self.with_links(*factor).problem(LARGEST_SHARE);
            LimitMethod::Exact.fit(&problem, 0, members.to_vec()).is_ok()
        };
        LARGER_LINKS.into_iter().find(is_enough)
    }

    /// The host with links of this times their capacity.
    fn with_links(&self, factor: f64) -> Self {
        let mut changed = self.clone();
        if let Some(links) = &mut changed.enforced {
            links.packet /= factor;
            links.link_burst = (links.link_burst / factor).max(LINK_BURST_S).max(links.packet);
        }
        for on_class in changed.workloads.iter_mut().flat_map(|workload| &mut workload.on_class) {
            on_class.curves = on_class.curves.map(|curve| curve.scaled(1.0 / factor));
            on_class.mean_rate = on_class.mean_rate.map(|rate| rate / factor);
            on_class.overtaking /= factor;
        }
        changed
    }

    /// The host as a server whose storage takes no time, and whose workloads ask for this share of their SLOs.
    fn problem(&self, slo_share: f64) -> PlanningProblem {
        let class = PlanningClass { name: self.name.clone(), count: 1, enforced: self.enforced };
        let mut workloads = self.workloads.clone();
        workloads.iter_mut().for_each(|workload| workload.slo.latency.0 *= slo_share);
        PlanningProblem::new(vec![class], workloads, PlanningProblem::MAX_RATE, PlanningProblem::SLO_FACTOR)
            .expect("names of workloads of a cluster are unique")
            .of_client_host(HOLD_UP_SHARE / slo_share)
    }
}
