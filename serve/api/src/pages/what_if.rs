//! The promise that a workload would get: a form that describes its traffic by limits, and the answer that a request would get now.
//!
//! The form is sent by GET: it asks and changes nothing, as every page does, and its answer has an address.

use crate::cluster::{Cluster, ClusterCore};
use crate::error::ApiError;
use crate::handler::blocking;
use crate::pages::frame::{Reader, Refused, still_page};
use crate::pages::tables::server_address;
use crate::pages::text::{percent, time};
use crate::pages::workload::derived;
use crate::privacy::derivation_for;
use crate::routes::decide_request;
use crate::uploads::{Upload, profiles};
use crate::viewer::Viewer;
use agent::ClientPlace;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::response::Response;
use controller::{Admission, ClusterState, Event, WorkloadRequest};
use model::Slo;
use plot::{Block, Form, KeyFigure, Link, Page, Status};
use serde::Deserialize;
use std::fmt::Write as _;
use std::sync::Arc;
use units::Bytes;

/// Requests of the traffic that stands for limits: as many as are read in a moment.
const REQUESTS_MAX: f64 = 1e6;
/// Least rate of limits, requests per second.
const RATE_MIN: f64 = 1e-3;
/// Name of the workload, and of the tenant where an operator names none.
const NAME: &str = "what-if";

/// The fields of the form, as they were filled in.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Filled {
    tenant: String,
    slo: String,
    address: String,
    host: String,
    reads: String,
    writes: String,
    size: String,
    burst: String,
}

/// A question that makes sense.
#[derive(Debug)]
struct Question {
    slo: Slo,
    client: ClientPlace,
    /// Limits in place of a trace.
    limits: String,
}

/// The answer to a question.
enum WhatIf {
    Yes(Box<Admission>),
    No(String),
    /// The form has a mistake.
    Unclear(String),
}

pub(super) async fn show(
    reader: Reader,
    State(cluster): State<Arc<Cluster>>,
    Query(filled): Query<Filled>,
) -> Result<Response, Refused> {
    // Without a field it is a link to the form.
    let is_asked = !filled.slo.trim().is_empty();
    let request = if is_asked { Some(request(&cluster, reader.viewer(), &filled).await) } else { None };
    still_page(reader, cluster, "/what-if", move |core, state, viewer| {
        let answer = request.map(|request| answer(core, request));
        Ok(what_if_page(state, viewer, &filled, answer.as_ref()))
    })
    .await
}

/// Reads the form into a request.
async fn request(
    cluster: &Arc<Cluster>,
    viewer: &Viewer,
    filled: &Filled,
) -> Result<WorkloadRequest, ApiError> {
    let question = filled.question().map_err(ApiError::invalid)?;
    let asked = Arc::clone(cluster);
    let profiles = blocking(move || Ok(profiles(asked.lock().controller.state()))).await?;
    if profiles.is_empty() {
        return Err(ApiError::invalid("there are no classes of servers yet"));
    }
    let upload = Upload::receive(cluster, "what-if.limits", Body::from(question.limits)).await?;
    let footprints = upload.footprints(profiles).await?;
    let tenant = match viewer.sees() {
        Some(tenant) => tenant,
        None if filled.tenant.trim().is_empty() => NAME,
        None => filled.tenant.trim(),
    };
    Ok(WorkloadRequest {
        tenant: tenant.to_owned(),
        name: NAME.to_owned(),
        slo: question.slo,
        clients: vec![question.client],
        key: None,
        footprints,
    })
}

/// Decides, and drops the decision.
fn answer(core: &ClusterCore, request: Result<WorkloadRequest, ApiError>) -> WhatIf {
    let decided = request.and_then(|mut request| {
        let state = core.controller.state();
        let mut number = 1;
        while state.find(&request.tenant, &request.name).is_some() {
            number += 1;
            request.name = format!("{NAME}-{number}");
        }
        decide_request(core, request)
    });
    match decided {
        Ok(Event::WorkloadAdmitted(admission)) => WhatIf::Yes(admission),
        Ok(Event::WorkloadRefused { reason, .. }) => WhatIf::No(reason),
        Ok(_) => unreachable!("a request is admitted or refused"),
        Err(error) => {
            let (message, hint) = error.text();
            WhatIf::Unclear(hint.map_or_else(|| message.to_owned(), |hint| format!("{message}; {hint}")))
        }
    }
}

impl Filled {
    fn question(&self) -> Result<Question, String> {
        let slo = self.slo.trim().parse::<Slo>().map_err(|error| format!("SLO: {error}"))?;
        let reads = number("Reads per second", &self.reads, 0.0)?;
        let writes = number("Writes per second", &self.writes, 0.0)?;
        let burst = number("Requests at once", &self.burst, 1.0)?;
        if reads + writes <= 0.0 {
            return Err(
                "reads and writes: expected more than 0 requests per second of one of them".to_owned()
            );
        }
        if burst < 1.0 || burst.fract() != 0.0 {
            return Err(format!("Requests at once: expected a whole number from 1, not {burst}"));
        }
        // The traffic of limits lasts until all bursts have come back twice.
        let slowest = [reads, writes].into_iter().filter(|rate| *rate > 0.0).fold(f64::INFINITY, f64::min);
        let requests = (2.0 * burst / slowest.max(RATE_MIN)).max(1.0) * (reads + writes) + 2.0 * burst;
        if requests > REQUESTS_MAX {
            return Err(format!(
                "a form takes at most {REQUESTS_MAX} requests until bursts of both have come back twice; send a trace of \
                 such a workload: `tailwright ctl request NAME SLO TRACE --what-if`"
            ));
        }
        let size = self.size.trim().parse::<Bytes>().map_err(|error| format!("Size: {error}"))?;
        let mut limits = String::from("op,size_bytes,rate_per_s,burst_requests\n");
        for (op, rate) in [("read", reads), ("write", writes)] {
            if rate > 0.0 {
                let rate = (rate * 1e3).ceil() / 1e3;
                let _ = writeln!(limits, "{op},{},{rate},{burst}", size.0);
            }
        }
        let host = Some(self.host.trim().to_owned()).filter(|host| !host.is_empty());
        let address = vec![self.address.trim().to_owned()];
        Ok(Question { slo, client: ClientPlace { host, address, export: None }, limits })
    }
}

/// Reads a number; an empty field has a value, too.
fn number(field: &str, text: &str, empty: f64) -> Result<f64, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(empty);
    }
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| format!("{field}: expected a number such as 200, not '{text}'"))
}

fn what_if_page(state: &ClusterState, viewer: &Viewer, filled: &Filled, answer: Option<&WhatIf>) -> Page {
    let lead = match answer {
        None => "What would a workload be promised? The question changes nothing.".to_owned(),
        Some(WhatIf::Yes(admission)) => {
            format!("Yes: within {}, as of event {}.", time(admission.bound_s), state.seq)
        }
        Some(WhatIf::No(_)) => format!("No, as of event {}.", state.seq),
        Some(WhatIf::Unclear(_)) => "The question is not clear.".to_owned(),
    };
    let mut page = Page::new("What if").lead(lead);
    match answer {
        Some(WhatIf::Yes(admission)) => page = page.section("", promise(viewer, filled, admission)),
        Some(WhatIf::No(reason)) => page = page.section("", [Block::paragraph(reason.clone())]),
        Some(WhatIf::Unclear(why)) => page = page.section("", [Block::paragraph(why.clone())]),
        None => {}
    }
    page.section("Workload", [form(viewer, filled).into(), Block::paragraph(EXPLANATION)])
}

const EXPLANATION: &str = "At most so many requests arrive in any second, and at most so many at once, of reads and of writes each. \
    A request with a recorded trace is often promised less time for the same: `tailwright ctl request NAME SLO TRACE --what-if`. \
    Other workloads may come until you ask.";

fn promise(viewer: &Viewer, filled: &Filled, admission: &Admission) -> Vec<Block> {
    let mut facts = vec![
        KeyFigure::new(admission.request.slo.clone(), "SLO"),
        KeyFigure::new(time(admission.bound_s), "bound").status(Status::Good),
        KeyFigure::new(admission.change.server.clone(), "server"),
    ];
    if let Ok(slo) = filled.slo.trim().parse::<Slo>() {
        let margin = 1.0 - admission.bound_s / slo.latency.0;
        facts.insert(2, KeyFigure::new(percent(margin), "margin of the bound to the SLO"));
    }
    let mut blocks: Vec<Block> = vec![facts.into()];
    for assumption in &admission.assumptions {
        blocks.push(Block::paragraph(format!("Assumed: {assumption}.")));
    }
    if viewer.is_operator() {
        let server = &admission.change.server;
        blocks.push(Block::Links(vec![Link::new(format!("Server {server}"), server_address(server))]));
    }
    let derivation = derivation_for(viewer.sees(), admission.derivation.clone());
    blocks.push(derived("How the bound is derived", &derivation));
    blocks
}

fn form(viewer: &Viewer, filled: &Filled) -> Form {
    let mut form = Form::new("/what-if", "Ask").asks();
    if viewer.is_operator() {
        form = form.text("tenant", "Tenant (may be empty)", &filled.tenant);
    }
    form.text("slo", "SLO, such as 99% < 100ms", &filled.slo)
        .text("reads", "Reads per second", &filled.reads)
        .text("writes", "Writes per second", &filled.writes)
        .text("size", "Size, such as 4KiB", &filled.size)
        .text("burst", "Requests at once", &filled.burst)
        .text("address", "Address of the clients", &filled.address)
        .text("host", "Host of the clients (may be empty)", &filled.host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled() -> Filled {
        Filled {
            slo: " 99% < 100ms ".to_owned(),
            address: "10.0.0.7".to_owned(),
            reads: "200".to_owned(),
            size: "4KiB".to_owned(),
            ..Filled::default()
        }
    }

    #[test]
    fn a_form_is_limits() {
        let question = filled().question().expect("a question");
        assert_eq!(question.limits, "op,size_bytes,rate_per_s,burst_requests\nread,4096,200,1\n");
        assert_eq!(question.client.host, None);
        let both =
            Filled { writes: "0.5".to_owned(), burst: "20".to_owned(), host: "app-1".to_owned(), ..filled() };
        let question = both.question().expect("a question");
        assert!(question.limits.ends_with("read,4096,200,20\nwrite,4096,0.5,20\n"), "{}", question.limits);
    }

    #[test]
    fn mistakes_are_named() {
        type Mistake = (fn(&mut Filled), &'static str);
        let mistakes: [Mistake; 9] = [
            (|it| it.slo = "soon".to_owned(), "SLO: "),
            (
                |it| it.reads = "many".to_owned(),
                "Reads per second: expected a number such as 200, not 'many'",
            ),
            (|it| it.reads = "-1".to_owned(), "Reads per second"),
            (|it| it.reads = "NaN".to_owned(), "Reads per second"),
            (|it| it.reads = String::new(), "expected more than 0"),
            (|it| it.reads = "1e9".to_owned(), "at most 1000000 requests"),
            (|it| it.burst = "1e9".to_owned(), "at most 1000000 requests"),
            (|it| it.burst = "0".to_owned(), "a whole number from 1"),
            (|it| it.size = "large".to_owned(), "Size: "),
        ];
        for (change, part) in mistakes {
            let mut wrong = filled();
            change(&mut wrong);
            let said = wrong.question().expect_err("it is wrong");
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}
