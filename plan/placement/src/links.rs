//! Delay of a server's members on a link that is enforced packet by packet.
//!
//! Linux's HTB serves priorities strictly, but in three ways it is not the queue of Eq. 5.1:
//!
//! **Equal priorities take turns**: deficit round robin with one quantum for all, not first come, first
//! served. Two bounds hold, and the lesser is used. Either all others of the level count as if they were
//! above: the service from the beginning of a busy period is bounded by all bursts and rates, in any order.
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
use model::Stage;

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
    /// True if the others of its level count with their turns instead of their bursts.
    pub(crate) takes_turns: bool,
}

/// Returns the load of each member at the network `stage`, in order of priority. The link may have begun
/// `begun`, and a packet takes `packet`, both in seconds; `limits` maps a workload's index to its limits.
pub(crate) fn link_loads<'a>(
    levels: &[PriorityLevel],
    stage: Stage,
    (begun, packet): (f64, f64),
    limits: &impl Fn(usize) -> &'a WorkloadLimits,
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
            let has_turns = (others + 1.0) * own.rate <= 1.0 - rate_above;
            let takes_turns = has_turns && stage_delay(in_turns) < stage_delay(any_order);
            let (load, before_own) = if takes_turns {
                (in_turns, burst_above + others * packet)
            } else {
                (any_order, burst_above + burst - own.burst)
            };
            let held_up = stage_delay(StageLoad { burst_at_or_above: before_own, ..load });
            let load = StageLoad {
                burst_at_or_above: load
                    .burst_at_or_above
                    .max(before_own + round_up(held_up * (1.0 - load.rate_above))),
                ..load
            };
            loads.push(LinkLoad { workload, load, held_up, takes_turns });
        }
        (burst_above, rate_above) = (burst_above + burst, rate_above + rate);
    }
    loads
}

/// Returns true if the member's bucket fills while it is held up, and so loses tokens.
pub(crate) fn loses_tokens(member: &LinkLoad, stage: Stage, limits: &WorkloadLimits) -> bool {
    // A member that is held up without bound loses what it has.
    limits[stage].burst < limits[stage].rate * member.held_up || !member.held_up.is_finite()
}

/// Raises bursts until no bucket loses tokens while its member is held up. If there are no such bursts,
/// leaves those of the last round, which the verification refuses.
pub(crate) fn raise_bursts(
    levels: &[PriorityLevel],
    members: &[usize],
    (begun, packet): (f64, f64),
    limits: &mut [WorkloadLimits],
) {
    let position = |workload: usize| members.iter().position(|&m| m == workload).expect("a member");
    for stage in [Stage::NetworkIn, Stage::NetworkOut] {
        for _ in 0..ROUNDS_MAX {
            let loads = link_loads(levels, stage, (begun, packet), &|w| &limits[position(w)]);
            let mut is_raised = false;
            for member in loads {
                let own = &mut limits[position(member.workload)];
                if loses_tokens(&member, stage, own) && member.held_up.is_finite() {
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
