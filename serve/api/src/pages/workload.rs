//! A workload: its SLO and bound, its requests, the limits that it has, what its trace would need, and what was decided about it.

use crate::cluster::Cluster;
use crate::documents::{DecisionDocument, covers_words, standing_word};
use crate::error::ApiError;
use crate::limits::ROWS_MAX;
use crate::pages::frame::{Reader, Refused, page};
use crate::pages::live::traffic;
use crate::pages::requests::requests;
use crate::pages::server::words;
use crate::pages::tables::{self, margin, server_address, standing_status};
use crate::pages::text::{percent, time};
use crate::privacy::{decision_for, derivation_for};
use crate::viewer::Viewer;
use axum::extract::{Query, State};
use axum::response::Response;
use controller::{ClusterState, NormalisedCurves, Standing, WorkloadObservation, WorkloadState};
use model::{RateLimit, Stage, StageLimit};
use plot::{
    Axis, Block, Bullets, Cell, Chart, Column, KeyFigure, Link, Marker, Page, Series, Status, Table, Unit,
};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// Range around the rate of a limit in which a curve is drawn, as a factor.
const SPREAD: f64 = 20.0;
/// Points of a curve.
const STEPS: i32 = 60;

#[derive(Deserialize)]
pub(super) struct WorkloadQuery {
    #[serde(default)]
    tenant: String,
    #[serde(default)]
    name: String,
}

pub(super) async fn show(
    reader: Reader,
    State(cluster): State<Arc<Cluster>>,
    Query(query): Query<WorkloadQuery>,
) -> Result<Response, Refused> {
    let clock = Arc::clone(&cluster);
    page(reader, cluster, "/workload", move |core, state, viewer| {
        let WorkloadQuery { tenant, name } = &query;
        if !viewer.may_see(tenant) {
            return Err(ApiError::forbidden("this token is of another tenant"));
        }
        let history = history(state, viewer, tenant, name);
        match state.find(tenant, name) {
            Some((id, workload)) => {
                let now = clock.instant();
                let observations = core.controller.observations();
                let observed = observations.of(state, id, workload, now);
                let live = observations.live_curves(state, id, workload, now);
                let page = present(state, viewer, id, workload, (&observed, live.as_ref()));
                Ok(page.section("History", [history.into()]))
            }
            None if is_known(state, tenant, name) => Ok(Page::new(format!("Workload {tenant}/{name}"))
                .lead("It has no place in the cluster.")
                .section("History", [history.into()])),
            None => Err(ApiError::unknown(format_args!("tenant '{tenant}' has no workload '{name}'"))),
        }
    })
    .await
}

fn is_known(state: &ClusterState, tenant: &str, name: &str) -> bool {
    state.decisions_after(0).iter().any(|decision| decision.tenant == tenant && decision.name == name)
}

fn history(state: &ClusterState, viewer: &Viewer, tenant: &str, name: &str) -> Table {
    let all = state.decisions_after(0).iter().rev();
    let own = all.filter(|decision| decision.tenant == tenant && decision.name == name).take(ROWS_MAX);
    let documents = own.map(|decision| decision_for(viewer.sees(), DecisionDocument::new(state, decision)));
    tables::decisions(viewer, documents)
}

fn present(
    state: &ClusterState,
    viewer: &Viewer,
    id: u64,
    workload: &WorkloadState,
    (observed, live): (&WorkloadObservation, Option<&NormalisedCurves>),
) -> Page {
    let request = &workload.request;
    let standing = state.standing(id);
    let margin = margin(workload);
    let facts = vec![
        KeyFigure::new(workload.slo.to_string(), "SLO"),
        KeyFigure::new(time(workload.bound_s), "bound"),
        KeyFigure::new(percent(margin), "margin of the bound to the SLO").status(if margin >= 0.0 {
            Status::Good
        } else {
            Status::Bad
        }),
        KeyFigure::new(standing_word(standing), "standing").status(standing_status(standing)),
    ];
    let mut blocks = vec![facts.into()];
    if let Some(seq) = workload.covered.renewed_by {
        let covers = covers_words(workload.covered);
        let when = if workload.is_renewing() {
            ", once all hosts have confirmed it; until then the smaller of both promises stands"
        } else {
            ""
        };
        blocks.push(Block::paragraph(format!("Promised for {covers}, by the renewal of event {seq}{when}.")));
    }
    for assumption in &workload.assumptions {
        blocks.push(Block::paragraph(format!("Assumed: {assumption}.")));
    }
    if viewer.is_operator() {
        let server = Link::new(format!("Server {}", workload.server), server_address(&workload.server));
        blocks.push(Block::Links(vec![server]));
    }
    let mut page = Page::new(format!("Workload {}", request.full_name()))
        .lead(lead(workload, standing))
        .section("", blocks)
        .section("Requests", requests(observed, workload.slo.latency.0))
        .section("Bound", bound(viewer, workload));
    if let Some(limits) = state.limits(workload) {
        page = page.section("Limits", self::limits(workload, limits, live));
    }
    if let Some(live) = &observed.live {
        page = page.section("What it sends", traffic(live, &observed.reason));
    }
    page.section("Clients", [clients(workload).into()])
}

fn lead(workload: &WorkloadState, standing: Standing) -> String {
    let bound = time(workload.bound_s);
    let server = &workload.server;
    match standing {
        Standing::Enforced => {
            format!(
                "Within {bound} on {server}, while devices are as fast as their profiles say: every host enforces its limits."
            )
        }
        Standing::Pending => {
            format!("Admitted to {server} with {bound}; not promised until all hosts enforce it.")
        }
        Standing::Advised => {
            format!("Admitted to {server} with {bound}; not promised, because an agent only advises.")
        }
        Standing::Gone => "It has no place in the cluster.".to_owned(),
    }
}

fn bound(viewer: &Viewer, workload: &WorkloadState) -> Vec<Block> {
    let chart = Bullets::new("Bound and SLO", Axis::linear("latency", Unit::Seconds), ("bound", "SLO"))
        .row(&workload.request.name, workload.bound_s, workload.slo.latency.0)
        .note(
            "The bar is the bound on every request, by the latest policy of the server; the tick is the SLO.",
        );
    let derivation = derivation_for(viewer.sees(), workload.derivation.clone());
    vec![chart.into(), derived("How the bound was derived when it was admitted", &derivation)]
}

/// Returns a derivation with its terms, folded.
pub(super) fn derived(summary: &str, derivation: &Value) -> Block {
    let json = serde_json::to_string_pretty(derivation).expect("a derivation is plain data");
    Block::fold(summary, [terms(derivation).into(), Block::Preformatted(json)])
}

/// The terms of a derivation, of which a later version of the program may have others.
fn terms(derivation: &Value) -> Table {
    let mut table = Table::new([Column::name("term"), Column::number("time")]);
    let mut push = |name: String, seconds: Option<f64>| {
        if let Some(seconds) = seconds {
            table.push([Cell::text(name), Cell::number(seconds, Unit::Seconds)]);
        }
    };
    for stage in derivation["stages"].as_array().into_iter().flatten() {
        let name = stage["stage"].as_str().unwrap_or_default();
        push(format!("queue at {name}"), stage["delay_s"].as_f64());
        push(format!("its own limiter at {name}"), stage["shaping_s"].as_f64());
    }
    push("idle storage".to_owned(), derivation["base_s"].as_f64());
    push("its own service".to_owned(), derivation["own_service_s"].as_f64());
    push("the proxy".to_owned(), derivation["proxy_s"].as_f64());
    push("bound".to_owned(), derivation["bound_s"].as_f64());
    table
}

fn limits(workload: &WorkloadState, limits: &[StageLimit], live: Option<&NormalisedCurves>) -> Vec<Block> {
    let mut table = Table::new([
        Column::name("stage"),
        Column::number("rate"),
        Column::number("burst"),
        Column::number("rate per second"),
        Column::number("bucket"),
        Column::number(format!("mean rate of {}", covers_words(workload.covered))),
    ]);
    for limit in limits {
        let unit = match limit.stage {
            Stage::Storage => Unit::Seconds,
            Stage::NetworkIn | Stage::NetworkOut => Unit::Bytes,
        };
        let mean = workload.mean_rate(limit.stage);
        table.push([
            Cell::text(words(limit.stage)),
            Cell::keyed(percent(limit.limit.rate), limit.limit.rate),
            Cell::number(limit.limit.burst, Unit::Seconds),
            Cell::number(limit.rate_per_s, unit),
            Cell::number(limit.bucket_work(), unit),
            Cell::keyed(percent(mean), mean),
        ]);
    }
    let charts = limits.iter().map(|limit| curve(workload, limit.stage, limit.limit, live).into());
    let how = "For each rate, the least burst with which a limiter delays nothing: of the traffic that is promised for, with the \
               safety margin, and of what its clients sent in the last week, as the proxy saw it. The mark is the limit that is \
               enforced.";
    vec![table.into(), Block::paragraph(how), Block::grid(3, charts)]
}

fn curve(workload: &WorkloadState, stage: Stage, limit: RateLimit, live: Option<&NormalisedCurves>) -> Chart {
    let low = (limit.rate / SPREAD).max(workload.mean_rate(stage));
    let high = (limit.rate * SPREAD).min(1.0);
    let ratio = high / low;
    let rates = || (0..=STEPS).map(|step| low * ratio.powf(f64::from(step) / f64::from(STEPS)));
    let points =
        rates().map(|rate| (rate, workload.least_burst(stage, rate))).filter(|point| point.1.is_finite());
    let live = live.map(|live| {
        // A logarithmic axis has no burst of 0.
        let points = rates().map(|rate| (rate, live.least_burst(stage, rate))).filter(|point| point.1 > 0.0);
        Series::line("sent in the last week", points)
    });
    let title = words(stage);
    Chart::new(title, Axis::log("rate", Unit::Percent), Axis::log("burst", Unit::Seconds))
        .series(Series::line(covers_words(workload.covered), points))
        .all(live)
        .marker(Marker::new(
            limit.rate,
            limit.burst,
            format!("{}, {}", percent(limit.rate), time(limit.burst)),
        ))
        .note("On and above a line the limiter delays nothing; the mark is the limit.")
        .height(210)
}

fn clients(workload: &WorkloadState) -> Table {
    let mut table = Table::new([Column::text("address"), Column::name("export"), Column::name("host")]);
    for client in &workload.request.clients {
        let text = |text: &Option<String>| Cell::text(text.as_deref().unwrap_or("–"));
        table.push([Cell::text(client.address.join(", ")), text(&client.export), text(&client.host)]);
    }
    table
}
