//! Delay of a server's members on a link that is enforced packet by packet.
//!
//! Linux's HTB serves priorities strictly, but in three ways it is not the queue of Eq. 5.1:
//!
//! **Equal priorities take turns**: deficit round robin with one quantum for all, not first come, first
//! served. Two bounds hold, and the lesser is used of those whose buckets lose no tokens (below). Either all others of
//! the level count as if they were above: the service from the beginning of a busy period is bounded by all bursts and rates, in any order.
//! Or, while a member has work to send, each of the m others sends at most as much as it does, and a packet:
//! `(B + Σ_above b + (m+1)·b + m·packet) / (1 − Σ_above r)`, if its own rate is within its turn, `(m+1)·r ≤ 1
//! − Σ_above r`.
//!
//! **Tokens are taken when a packet is sent**, and a full bucket takes no more. With h for the longest time that others keep
//! the link from a member, its delay is at most `h + max(b / left, h)`, `left` being what its work is sent with, if
//! `b ≥ r·h` and `r ≤ left`. *Proof.* A request that arrives at t is done at u. Let w < u be the last instant at which the
//! bucket was in debt (without one the delay is that of a queue, `h + b / left`), v < w the last at which it was full, and s
//! the beginning of the backlog that holds v; of what arrived since s, the link sent Z until v. What is sent between v and w
//! is `b + r·(w − v)`, and no more than what arrived from s to t without Z, at most `b + r·(t − s) − Z`. So
//! `w − t ≤ v − s − Z/r`. No debt was between s and v, because to fill again takes the bucket `b/r ≥ h`; hence
//! `v − s ≤ h + Z/left` and `w − t ≤ h`. What is left at w is at most `r·(v − s − Z/r − (w − t))`, so that
//! `u − w ≤ h + (h − (w − t))·r/left`, and `u − t ≤ 2h`. If v is in no backlog, s = v and Z = 0. Work that a stage before it
//! delays by up to D has the same bound after t + D. Bursts are raised until `b ≥ r·h`: [`raise_bursts`].
//!
//! **A device with several channels answers in another order**, and those that overtake a request take the tokens of its
//! workload first. A workload keeps the limit ⟨r, b⟩ of network-out by the arrivals of its requests at the server. The bucket
//! there is ⟨r, b + A⟩ with A the most work that overtakes one request ([`EnforcedClass::overtaking`](calculus::EnforcedClass)),
//! and bounds count b + A for everybody. *Then the bound is that of answers in order.* Of the answers in the order in which they
//! leave the device, let answer i have arrived at `v_i`, the least arrival of i and of all that leave after it. These instants
//! do not decrease, and `v_i ≤ t_i`. Let j be the last to leave of those that arrived until some v. Whatever has `v_i ≤ v` and
//! arrived after v leaves before j, so it was begun after j, because a workload's requests are begun in their order, and was
//! done before j: it is at most A. Hence from s to v arrive in this sense at most `b + r·(v − s) + A`, first come, first served;
//! a request that reaches the link up to D after it arrived reaches it up to D after `v_i`: it is the `v_j` of some j that
//! leaves no sooner. What holds for the bucket ⟨r, b + A⟩ above holds from there. That a workload may spend b but not A is
//! essential: were both spent at once, the answers that are overtaken would wait for A/r.
//!
//! *Assumptions*: no request of the workload takes longer at the device than its largest, and none brings more to network-out
//! per device time than the densest; a policy has both beside the limits.
//!
//! **Each class may send one packet before its turn**, because no class has a rate of nothing, each bucket may go into
//! debt by a packet, and the link's shaper may have sent its burst to the wire: see
//! [`EnforcedClass::begun_on_link`](calculus::EnforcedClass::begun_on_link).

use crate::levels::{PriorityLevel, WorkloadLimits};
use calculus::{StageLoad, round_up, stage_delay};
use model::{RateLimit, Stage};

/// Maximum number of rounds that raise bursts; each raises them less.
const ROUNDS_MAX: usize = 32;
/// Factor by which bursts are raised beyond the need, so that the iteration ends.
const BEYOND: f64 = 1.0 + 1e-6;

/// Load and delay of a member of a server on a link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LinkLoad {
    /// The index of the member in the problem.
    pub(crate) workload: usize,
    /// The load by which its delay is bounded. Its own burst counts as at least what is sent while it is held up.
    pub(crate) load: StageLoad,
    /// Longest time without sending anything, seconds.
    pub(crate) held_up: f64,
    /// True if its bucket fills while it is held up, and so loses tokens: then the load bounds nothing.
    pub(crate) loses_tokens: bool,
    /// True if the others of its level count with their turns instead of their bursts.
    pub(crate) takes_turns: bool,
}

impl LinkLoad {
    /// Returns the load of a member with this limit, when what is sent before its own work counts as `before_own`.
    fn new(workload: usize, own: RateLimit, load: StageLoad, before_own: f64) -> Self {
        let held_up = stage_delay(StageLoad { burst_at_or_above: before_own, ..load });
        let least = before_own + round_up(held_up * (1.0 - load.rate_above));
        let load = StageLoad { burst_at_or_above: load.burst_at_or_above.max(least), ..load };
        // A member that is held up without bound loses what it has.
        let loses_tokens = own.burst < own.rate * held_up || !held_up.is_finite();
        Self { workload, load, held_up, loses_tokens, takes_turns: false }
    }
}

/// Returns the load of each member at the network `stage`, in order of priority. The link may have begun
/// `begun`, and a packet takes `packet`, both in seconds; `limits` maps a workload's index to its limits.
///
/// Without one of the members the delay of no other is longer, and no other loses tokens that lost none.
pub(crate) fn link_loads<'a>(
    levels: &[PriorityLevel],
    stage: Stage,
    begun: (f64, f64),
    limits: &impl Fn(usize) -> &'a WorkloadLimits,
) -> Vec<LinkLoad> {
    least_loads(levels, stage, begun, limits, |load| load.loses_tokens)
}

/// Returns the load by which the delay of each member is the least, of those that are not `last_choice` if there is one.
fn least_loads<'a>(
    levels: &[PriorityLevel],
    stage: Stage,
    (begun, packet): (f64, f64),
    limits: &impl Fn(usize) -> &'a WorkloadLimits,
    last_choice: impl Fn(&LinkLoad) -> bool,
) -> Vec<LinkLoad> {
    let mut burst_above = 0.0;
    let mut rate_above = 0.0;
    let mut loads = Vec::new();
    for level in levels {
        let burst: f64 = level.members.iter().map(|&w| limits(w)[stage].burst).sum();
        let rate: f64 = level.members.iter().map(|&w| limits(w)[stage].rate).sum();
        let others = level.members.len() as f64 - 1.0;
        for &workload in &level.members {
            let own = limits(workload)[stage];
            let any_order = StageLoad {
                burst_at_or_above: burst_above + burst,
                rate_above: rate_above + rate - own.rate,
                blocking: begun,
            };
            let in_turns = StageLoad {
                burst_at_or_above: burst_above + (others + 1.0) * own.burst + others * packet,
                rate_above,
                blocking: begun,
            };
            let by_burst = LinkLoad::new(workload, own, any_order, burst_above + burst - own.burst);
            let before_own = burst_above + others * packet;
            let by_turns =
                LinkLoad { takes_turns: true, ..LinkLoad::new(workload, own, in_turns, before_own) };
            let has_turns = (others + 1.0) * own.rate <= 1.0 - rate_above;
            let is_less = last_choice(&by_turns)
                .cmp(&last_choice(&by_burst))
                .then_with(|| stage_delay(by_turns.load).total_cmp(&stage_delay(by_burst.load)))
                .is_lt();
            loads.push(if has_turns && is_less { by_turns } else { by_burst });
        }
        (burst_above, rate_above) = (burst_above + burst, rate_above + rate);
    }
    loads
}

/// Raises bursts until no bucket loses tokens while its member is held up. If there are no such bursts,
/// leaves those of the last round, which the verification refuses.
pub(crate) fn raise_bursts(
    stages: &[Stage],
    levels: &[PriorityLevel],
    members: &[usize],
    (begun, packet): (f64, f64),
    limits: &mut [WorkloadLimits],
) {
    let position = |workload: usize| members.iter().position(|&m| m == workload).expect("a member");
    for &stage in stages {
        for _ in 0..ROUNDS_MAX {
            let loads = least_loads(levels, stage, (begun, packet), &|w| &limits[position(w)], |_| false);
            let mut is_raised = false;
            for member in loads {
                let own = &mut limits[position(member.workload)];
                if member.loses_tokens && member.held_up.is_finite() {
                    own[stage].burst = own[stage].rate * member.held_up * BEYOND;
                    is_raised = true;
                }
            }
            if !is_raised {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::PerStage;
    use proptest::prelude::*;

    const STAGE: Stage = Stage::NetworkIn;

    /// Returns levels of workloads that are numbered in order, without `absent`.
    fn levels_of(sizes: &[usize], absent: Option<usize>) -> Vec<PriorityLevel> {
        let mut numbers = 0..;
        let mut levels = Vec::new();
        for &size in sizes {
            let mut members: Vec<usize> = numbers.by_ref().take(size).collect();
            members.retain(|&member| Some(member) != absent);
            levels.push(PriorityLevel { budget: 1.0, members });
        }
        levels
    }

    proptest! {
        /// A workload that leaves makes no bound larger, whether bursts were raised or not.
        #[test]
        fn without_one_of_them_no_other_waits_longer(
            sizes in prop::collection::vec(1usize..4, 1..4),
            limits in prop::collection::vec((0.0f64..0.4, 0.0f64..0.2), 9),
            packet in 1e-6f64..1e-2,
            begun in 0.0f64..0.05,
            absent in any::<prop::sample::Index>(),
            is_raised in any::<bool>(),
        ) {
            let count: usize = sizes.iter().sum();
            let absent = absent.index(count);
            let mut limits: Vec<WorkloadLimits> = limits[..count]
                .iter()
                .map(|&(rate, burst)| PerStage::from_fn(|_| RateLimit { rate, burst }))
                .collect();
            let members: Vec<usize> = (0..count).collect();
            if is_raised {
                raise_bursts(&[STAGE], &levels_of(&sizes, None), &members, (begun, packet), &mut limits);
            }
            let loads = |absent| link_loads(&levels_of(&sizes, absent), STAGE, (begun, packet), &|w| &limits[w]);
            let before = loads(None);
            for after in loads(Some(absent)) {
                let before = before.iter().find(|before| before.workload == after.workload).expect("a member");
                prop_assert!(before.loses_tokens || !after.loses_tokens, "{before:?}, then {after:?}");
                if !before.loses_tokens {
                    let [before, after] = [before, &after].map(|member| stage_delay(member.load));
                    prop_assert!(after <= before * (1.0 + 1e-12), "{before} s, then {after} s");
                }
            }
        }
    }
}
