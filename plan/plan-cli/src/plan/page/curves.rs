//! r-b curves with the chosen point, as small multiples.

use crate::plan::page::plan_view::PlanView;
use calculus::ArrivalCurve;
use model::{RateLimit, Stage};
use operation::text::{percent, time};
use plot::{Axis, Block, Chart, Marker, Series, Unit};
use units::plural;

/// Charts that stand open, and at most per stage.
const OPEN: usize = 12;
const DRAWN_MAX: usize = 48;
const COLUMNS: usize = 3;
/// Range around the chosen rate in which a curve is drawn, as a factor.
const SPREAD: f64 = 20.0;

pub(super) fn blocks(view: &PlanView) -> Vec<Block> {
    let drawn = &view.tightest[..view.tightest.len().min(DRAWN_MAX)];
    let open = &drawn[..drawn.len().min(OPEN)];
    let mut blocks = vec![
        Block::paragraph(
            "For each rate, the least burst with which a limiter delays nothing in the trace; the mark is the \
             chosen limit. A curve begins at the mean rate, below which no burst is enough for ever, where that is near. \
             Storage, least slack first.",
        ),
        grid(view, open, Stage::Storage),
    ];
    if drawn.len() > open.len() {
        let rest = &drawn[open.len()..];
        let summary = format!("{} at storage", plural(rest.len(), "more curve"));
        blocks.push(Block::fold(summary, [grid(view, rest, Stage::Storage)]));
    }
    for stage in [Stage::NetworkIn, Stage::NetworkOut] {
        blocks.push(Block::fold(format!("The curves at {stage}"), [grid(view, open, stage)]));
    }
    if view.tightest.len() > open.len() {
        blocks.push(Block::paragraph(format!(
            "Of {} workloads, the {} with the least slack are drawn at storage and {} at the other stages; the \
             limits of all are in the table below.",
            view.tightest.len(),
            drawn.len(),
            open.len()
        )));
    }
    blocks
}

fn grid(view: &PlanView, workloads: &[usize], stage: Stage) -> Block {
    Block::grid(COLUMNS, workloads.iter().map(|&w| chart(view, w, stage).into()))
}

fn chart(view: &PlanView, workload: usize, stage: Stage) -> Chart {
    let server = &view.planned.placement.servers[view.place(workload).server];
    let limit = server.limits_of(workload)[stage];
    let on = &view.planned.instance.workloads[workload].on_class[server.class];
    Chart::new(
        format!("{} ({})", view.name(workload), time(view.slo(workload))),
        Axis::log("rate", Unit::Percent),
        Axis::log("burst", Unit::Seconds),
    )
    .series(Series::line("least burst", points(&on.curves[stage], limit)))
    .note("On and above the line the limiter delays nothing; the mark is the limit.")
    .marker(Marker::new(limit.rate, limit.burst, format!("{}, {}", percent(limit.rate), time(limit.burst))))
    .height(210)
}

/// The curve around the chosen point: its corners, and enough between them for a log scale, on which
/// straight lines bend.
fn points(curve: &ArrivalCurve, limit: RateLimit) -> Vec<(f64, f64)> {
    const STEPS: i32 = 60;
    let low = (limit.rate / SPREAD).max(curve.sustained_rate());
    let high = (limit.rate * SPREAD).min(1.0);
    let ratio = high / low;
    let even = (0..=STEPS).map(|i| low * ratio.powf(f64::from(i) / f64::from(STEPS)));
    let slope = |pair: &[calculus::CurveVertex]| {
        (pair[1].work - pair[0].work) / (pair[1].duration - pair[0].duration)
    };
    let corners = curve.vertices().windows(2).map(slope).filter(|rate| (low..=high).contains(rate));
    let mut rates: Vec<f64> = even.chain(corners).collect();
    rates.sort_by(f64::total_cmp);
    rates.into_iter().map(|rate| (rate, curve.burst(rate))).filter(|p| p.1.is_finite()).collect()
}
