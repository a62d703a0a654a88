//! Figure 5.9: ten random sets of many workloads with random SLOs. The thesis has 1,000 in a set; the linear program takes
//! minutes for each of those.

use super::methods::{PackingMethod, STATE_OF_THE_ART};
use super::sources::TraceSet;
use super::{draws, format_more, interrupted};
use crate::claim::{Claim, Expected, format_change, format_factor};
use crate::context::{Context, FigureError};
use crate::figure::{AxisQuantity, FigureAxis, FigurePlot, FigureSeries, ReproducedFigure};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use sim::engine::Estimate;

/// Difference from the thesis.
const COLLECTION: &str = "the 41 traces are a part of the thesis's collection";
/// Random sets.
const SETS: usize = 10;
/// Workloads of a set.
const SET_SIZE: usize = 200;
/// Workloads of a set where precision does not matter.
const SMALL_SET_SIZE: usize = 60;

const METHODS: [PackingMethod; 6] = [
    PackingMethod::Compactor,
    PackingMethod::EffectiveBandwidth,
    PackingMethod::Knee,
    PackingMethod::OneAndAHalfTimesAverage,
    PackingMethod::TwiceAverage,
    PackingMethod::Tailwright,
];

pub(crate) fn run(context: &Context) -> Result<ReproducedFigure, FigureError> {
    let set = TraceSet::read(context, 1.0, |_, _| true)?;
    let count = if context.effort < 1.0 { SMALL_SET_SIZE } else { SET_SIZE };
    let sets = draws(SETS, context.effort);
    let mut random = StdRng::seed_from_u64(context.seed);
    // Servers by set and method.
    let mut servers: Vec<Vec<f64>> = Vec::new();
    for number in 0..sets {
        (context.progress)(number, sets);
        let drawn = set.draw_mixed(count, &mut random);
        let mut by_method = Vec::new();
        for method in METHODS {
            interrupted(context)?;
            by_method.push(method.servers(&set, &drawn) as f64);
        }
        servers.push(by_method);
    }
    let mut lines = Vec::new();
    for (position, method) in METHODS.into_iter().enumerate() {
        let points = servers.iter().enumerate().map(|(set, by)| (set as f64 + 1.0, by[position]));
        lines.push(FigureSeries::new(method.name(), points));
    }
    let x = FigureAxis::linear("random set", AxisQuantity::Number);
    let y = FigureAxis::linear("servers", AxisQuantity::Number);
    Ok(ReproducedFigure {
        reading: format!(
            "{sets} sets of {count} workloads (the thesis: ten of 1000), each a random one of {} traces with a random SLO of 100, 150, 250, 500 or \
             1000 ms that it can keep alone on a server, placed and counted as in thesis-fig-5-4. WorkloadCompactor is \
             placed by first fit here: the thesis does not say which of first fit and fast first fit it had.",
            set.files.len()
        ),
        plots: vec![FigurePlot::new(format!("Servers for {count} workloads with random SLOs"), x, y, lines)],
        claims: claims(&servers),
    })
}

/// The ratio of the servers of a method to those of WorkloadCompactor, in each set.
fn ratios(servers: &[Vec<f64>], method: PackingMethod) -> Vec<f64> {
    let position = METHODS.iter().position(|one| *one == method).expect("one of the methods");
    servers.iter().map(|by_method| by_method[position] / by_method[0]).collect()
}

fn mean(ratios: &[f64]) -> Estimate {
    Estimate::of(ratios, 0.95).expect("there are sets")
}

fn claims(servers: &[Vec<f64>]) -> Vec<Claim> {
    let mut claims = Vec::new();
    let mut least = f64::INFINITY;
    for method in STATE_OF_THE_ART {
        let ratios = ratios(servers, method);
        let ratio = mean(&ratios);
        let more = Estimate { value: ratio.value - 1.0, ..ratio };
        let statement = format!("{} uses over 40 % more servers than WorkloadCompactor", method.name());
        claims.push(Claim::new(&statement, Expected::AtLeast(0.4), more, format_more).because(COLLECTION));
        least = ratios.into_iter().fold(least, f64::min);
    }
    claims.push(Claim::exact(
        "WorkloadCompactor uses fewer servers than each method in each set",
        Expected::Positive,
        least - 1.0,
        format_change,
    ));
    let ours = mean(&ratios(servers, PackingMethod::Tailwright));
    let statement = "tailwright uses no more servers than WorkloadCompactor";
    claims.push(Claim::new(statement, Expected::AtMost(1.0), ours, format_factor).ours());
    claims
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Agreement;

    fn verdicts(servers: [f64; METHODS.len()]) -> Vec<Agreement> {
        claims(&[servers.to_vec(), servers.to_vec()]).iter().map(|claim| claim.agreement).collect()
    }

    #[test]
    fn claims_are_judged_by_the_servers() {
        assert_eq!(verdicts([100.0, 150.0, 160.0, 170.0, 180.0, 95.0]), [Agreement::Agree; 6]);
        assert_eq!(verdicts([100.0, 130.0, 99.0, 120.0, 139.0, 105.0]), [Agreement::Differ; 6]);
    }
}
