//! A plan as one page: who is where, bounds against SLOs, and the limits.

pub(crate) mod curves;
pub(crate) mod plan_view;
pub(crate) mod servers;
pub(crate) mod tables;

use crate::plan::page::plan_view::PlanView;
use crate::plan::{comparison, fleet};
use model::Stage;
use operation::text::{amount, percent};
use plan::cluster::ClusterProblem;
use plan::planning::{MethodComparison, PlanRun, PlannedCluster};
use plot::{Axis, Bars, Block, Bullets, KeyFigure, Page, RowOrder, Status, Unit};
use units::plural;

/// The page about a plan.
pub(crate) fn html(run: &PlanRun) -> String {
    let problem = &run.problem;
    let planned = &run.planned;
    let compared = &run.compared;
    let view = PlanView::new(planned);
    let mut page = Page::new(title(planned)).lead(lead(run)).section("", [facts(&view)]);
    if !planned.placement.refused.is_empty() {
        page =
            page.section("Not admitted", tables::refused(&planned.refused(), "why, and what would admit it"));
    }
    if let Some(prices) = &planned.fleet {
        page = page.section("Prices", fleet::blocks(planned, prices));
    }
    page = page
        .section("Servers", servers::blocks(&view))
        .section("Bounds and SLOs", [bounds(&view).into(), composition(&view)]);
    let hosts = planned.hosts();
    if !hosts.is_empty() {
        let table = tables::hosts(hosts).into();
        let note = Block::paragraph(
            "A bound contains the waits on the links of the host from which the workload's requests come: out of it for \
             requests, into it for answers.",
        );
        page = page.section("Client hosts", [table, note]);
    }
    if let Some(survival) = &run.survival {
        page = page.section(format!("If a {} fails", survival.fails), tables::failures(survival));
    }
    if !compared.is_empty() {
        page = page.section("Compared with published methods", comparison(compared, planned));
    }
    page = page
        .section("Burst curves and the chosen limits", curves::blocks(&view))
        .section("All limits", [tables::limits(&view).into()])
        .section("How to read this page", how_to_read(planned));
    cli::page::document(page.footer(footer(problem, &format!("policy {} · ", planned.recipe.method.name()))))
}

fn title(planned: &PlannedCluster) -> String {
    format!(
        "{} on {}",
        plural(planned.admitted(), "workload"),
        plural(planned.placement.servers.len(), "server")
    )
}

fn lead(run: &PlanRun) -> String {
    let answer = run.summary();
    match run.planned.tightest() {
        None => format!("{answer}."),
        Some(_) => format!(
            "{answer}. Every admitted workload's tail latency is guaranteed by its limits and priority."
        ),
    }
}

fn facts(view: &PlanView) -> Block {
    let planned = view.planned;
    let all = planned.instance.workloads.len();
    let admitted = planned.admitted();
    let admitted_status = if admitted == all { Status::Good } else { Status::Bad };
    let mut facts = vec![
        KeyFigure::new(planned.placement.servers.len().to_string(), "servers used"),
        KeyFigure::new(planned.lower_bound.servers.to_string(), "servers needed at least"),
        KeyFigure::new(format!("{admitted} of {all}"), "workloads admitted").status(admitted_status),
    ];
    if let Some(fleet) = &planned.fleet {
        facts.push(KeyFigure::new(amount(fleet.price), "price"));
        facts.push(KeyFigure::new(amount(fleet.price_lower_bound), "price at least"));
    }
    if let Some(&workload) = view.tightest.first() {
        let label = format!("tightest bound / SLO ({})", view.name(workload));
        facts.push(KeyFigure::new(percent(view.used(workload)), label));
    }
    facts.push(KeyFigure::new(planned.recipe.method.name(), "policy"));
    facts.into()
}

fn comparison(compared: &[MethodComparison], planned: &PlannedCluster) -> Vec<Block> {
    let orders = ["first fit in order of arrival", "best order"];
    let mut bars = Bars::grouped("Servers used", ("servers", Unit::Count), orders)
        .note("A method that refuses workloads needs more servers than its bars show.");
    let all = planned.instance.workloads.len();
    for row in compared {
        let (Some(first), Some(best)) = (row.first_fit, row.best_order) else { continue };
        let name = if first.workloads_admitted == all && best.workloads_admitted == all {
            row.policy_name.clone()
        } else {
            format!(
                "{} ({} and {} of {all})",
                row.policy_name, first.workloads_admitted, best.workloads_admitted
            )
        };
        bars = bars.row(name, [first, best].map(|one| one.servers_used as f64));
    }
    let mut blocks = vec![bars.into(), tables::compared(compared, all).into()];
    blocks.extend(comparison::notes(compared).map(Block::paragraph));
    blocks
}

fn bounds(view: &PlanView) -> Bullets {
    let chart = Bullets::new(
        "Guaranteed latency against SLO, least slack first",
        Axis::linear("latency", Unit::Seconds),
        ("bound", "SLO"),
    )
    .order(RowOrder::TightestFirst)
    .note("A bar that ends left of its tick keeps the SLO whatever happens within the limits; the gap is the slack.");
    let add = |chart: Bullets, &w: &usize| {
        let chart = chart.row(view.name(w), view.place(w).guarantee.total, view.slo(w));
        view.further(w).into_iter().fold(chart, |chart, further| {
            let name = format!("{}: {}", view.name(w), further.slo);
            chart.row(name, further.bound_s, further.slo.slo.latency.0)
        })
    };
    view.tightest.iter().fold(chart, add)
}

/// Shows the parts of the bounds.
fn composition(view: &PlanView) -> Block {
    let shaping = |w: usize| view.place(w).guarantee.shaping.iter().map(|(_, delay)| *delay).sum::<f64>();
    let shaped = view.tightest.iter().any(|&w| shaping(w) > 0.0);
    let mut parts: Vec<&str> = Stage::ALL.iter().map(|stage| stage.name()).collect();
    parts.push("idle storage");
    let has_clients = !view.planned.instance.clients.is_empty();
    if has_clients {
        parts.push("client links");
    }
    if shaped {
        parts.push("own limiter");
    }
    let chart = Bars::stacked("What each bound is made of", ("latency", Unit::Seconds), parts).note(
        "Waiting at each stage, for what it has started and for the bursts of the same and higher priorities; then \
         what the idle device and the workload's own limiter add.",
    );
    let chart = view.tightest.iter().fold(chart, |chart, &w| {
        let guarantee = &view.place(w).guarantee;
        let mut values: Vec<f64> = guarantee.queueing.terms.iter().map(|term| term.delay).collect();
        values.push(guarantee.base);
        if has_clients {
            values.push(guarantee.client);
        }
        if shaped {
            values.push(shaping(w));
        }
        chart.row(view.name(w), values)
    });
    Block::fold("What each bound is made of, stage by stage", [chart.into()])
}

fn how_to_read(planned: &PlannedCluster) -> Vec<Block> {
    let (started, proxy) = match planned.recipe.preemptive {
        true => ("", ""),
        false => ("what the stage has started plus ", " and the time in the proxy"),
    };
    vec![
        Block::paragraph(format!(
            "A bound is the latency that no request exceeds as long as every workload on the server stays inside \
             its limits and the devices keep up with their profiles. It is computed, not measured: at each stage, \
             {started}the bursts of the same and higher priorities, divided by the capacity that the rates of higher \
             priorities leave; summed over the stages, plus the latency of the idle storage{proxy}. Real latencies are \
             usually far below."
        )),
        Block::paragraph(
            "A limit is a token bucket: rate as a fraction of the stage's capacity, burst in seconds of that \
             capacity. A workload's r-b curve shows, for each rate, the least burst with which the limiter delays \
             nothing in its trace. Where workloads share a server, a point on each curve is chosen so that all bounds \
             stay within their SLOs. Mean loads are low because bursts, not means, decide who fits together; \
             best-effort work can use what is left.",
        ),
        Block::paragraph(format!(
            "`tailwright explain WORKLOAD` prints the derivation of a bound term by term. Reserved rates at a stage \
             add up to at most {}, bounds stay below {} of the SLO.",
            percent(planned.instance.max_rate),
            percent(planned.instance.slo_factor)
        )),
    ]
}

/// The file that was asked about, by which rule or model it was answered, and its safety margin.
pub(crate) fn footer<W>(problem: &ClusterProblem<W>, answered_by: &str) -> String {
    let file = problem.origin.file_name().unwrap_or_default().to_string_lossy();
    format!("{file} · {answered_by}safety margin {}", problem.safety_margin)
}
