//! The worst case as an upper limit of other models' latencies.

use crate::{WorstCase, WorstCaseSketch};
use model::{LatencyModel as _, ServerMember};

/// The worst case of each member behind `begun` seconds of work, seconds; infinite where there is none, or
/// where the caller caps bounds (`guarantee` is `None`). `sketch_of` is a member's sketch for it.
pub(crate) fn worst_cases<S>(
    guarantee: Option<WorstCase>,
    members: &[ServerMember<'_, S>],
    sketch_of: impl Fn(&S) -> Option<&WorstCaseSketch>,
    begun: &[f64],
) -> Vec<f64> {
    let unknown = vec![f64::INFINITY; members.len()];
    let Some(guarantee) = guarantee else { return unknown };
    let sketches: Option<Vec<_>> = members.iter().map(|member| sketch_of(member.sketch)).collect();
    let Some(sketches) = sketches else { return unknown };
    let members = members.iter().zip(sketches).map(|(member, sketch)| seen_by(member, sketch));
    let predictions = guarantee.predict_behind(&members.collect::<Vec<_>>(), begun);
    predictions
        .into_iter()
        .map(|prediction| prediction.map_or(f64::INFINITY, |prediction| prediction.bound))
        .collect()
}

/// Returns the member as the model of another sketch sees it.
pub(crate) fn seen_by<'b, S, T>(member: &ServerMember<'_, S>, sketch: &'b T) -> ServerMember<'b, T> {
    ServerMember { sketch, priority: member.priority, group: member.group, percentile: member.percentile }
}
