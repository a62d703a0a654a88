//! Page about an experiment with real requests: SLOs met by policy, the causes, the paper's claim, the run,
//! and its validity.

mod quality;

use crate::lab::experiment_text::{ExperimentView, PLAN, PlayedCase, admits, case_name, plan_rows};
use cli::page_table::table;
use lab::experiment::{Bottleneck, PolicyName, SloRule, TenantSource};
use measure_cli::verify::latency;
use measure_cli::verify::latency::ObservedLatencies;
use measure_cli::verify::text::{VERDICTS, verdict_row};
use operation::text::time;
use plot::{Block, Cell, Column, Dots, KeyFigure, Page, Status, Table};
use units::{Nanos, plural};

/// The percentiles that are drawn beside each other, in that order.
const PERCENTILES: [f64; 3] = [50.0, 99.0, 99.9];

const NAMES: &str =
    "What the paper calls PriorityMeister is the policy tailwright here, and Cake is feedback.";

/// The page about an experiment.
pub(crate) fn html(view: &ExperimentView) -> String {
    let experiment = &view.planned.experiment;
    let claim = Table::new(["the paper", "here"].map(Column::text))
        .row([Cell::from(experiment.claim), Cell::from(view.lead())]);
    let mut page = Page::new(experiment.title)
        .lead(format!("{} {}", view.lead(), how(view)))
        .section("SLOs met, by policy", [facts(view), claim.into(), Block::paragraph(NAMES)]);
    for number in 0..view.planned.cases.len() {
        let part = CaseSection::new(view, number);
        if !part.done.is_empty() {
            page = page.section(part.heading(), part.blocks());
        }
    }
    let page = page
        .section("What was run", played(view))
        .section("Whether the runs are valid", quality::blocks(view))
        .section("How to read this page", how_to_read(view));
    cli::page::document(page.footer(footer(view)))
}

fn how(view: &ExperimentView) -> String {
    format!(
        "Real requests on one machine, {} after {} of warm-up; {}.",
        view.observed(),
        time(view.settings.warm_up.as_secs()),
        view.planned.setting()
    )
}

fn footer(view: &ExperimentView) -> String {
    let requests: usize = view.done.iter().map(|done| done.played.report.observations.requests.len()).sum();
    format!(
        "{} · seed {} · {}",
        view.planned.experiment.name,
        view.settings.seed,
        plural(requests, "request")
    )
}

/// SLOs that each policy meets.
fn facts(view: &ExperimentView) -> Block {
    let fact = |kept: &crate::lab::experiment_text::SlosMet| {
        let status = match () {
            () if kept.is_all_met() => Status::Good,
            () if kept.not_met > 0 => Status::Bad,
            () => Status::Warn,
        };
        let open = if kept.open() == 0 { String::new() } else { format!(", {} open", kept.open()) };
        KeyFigure::new(format!("{} of {}", kept.met, kept.all), format!("{}{open}", kept.policy.name()))
            .status(status)
    };
    view.kept().iter().map(fact).collect::<Vec<KeyFigure>>().into()
}

/// A case, with what was observed of each tenant under each policy.
struct CaseSection<'a> {
    view: &'a ExperimentView<'a>,
    number: usize,
    done: Vec<&'a PlayedCase>,
    /// The observed latencies by policy and tenant.
    seen: Vec<Vec<ObservedLatencies>>,
}

impl<'a> CaseSection<'a> {
    fn new(view: &'a ExperimentView<'a>, number: usize) -> Self {
        let done: Vec<&PlayedCase> = view.done.iter().filter(|done| done.case == number).collect();
        let mut seen = Vec::new();
        for done in &done {
            let observations = &done.played.report.observations;
            let tenants = 0..done.rows.len();
            seen.push(tenants.map(|at| latency::observed_latencies(observations, at)).collect());
        }
        Self { view, number, seen, done }
    }

    fn tenants(&self) -> std::ops::Range<usize> {
        0..self.view.planned.cases[self.number].case.tenants.len()
    }

    fn tenant(&self, tenant: usize) -> &'static str {
        self.view.planned.cases[self.number].case.tenants[tenant].name
    }

    fn heading(&self) -> String {
        match self.view.planned.cases[self.number].case.name {
            "" => "Verdicts and latencies".to_owned(),
            name => format!("Case {name}"),
        }
    }

    fn blocks(&self) -> Vec<Block> {
        let columns = match self.tenants().len() {
            1 => 1,
            2 | 4 => 2,
            _ => 3,
        };
        let mut blocks = vec![self.verdicts().into(), self.percentiles().into()];
        blocks.push(Block::grid(columns, self.tenants().map(|at| self.distribution(at))));
        blocks.push(Block::grid(2, self.tenants().flat_map(|at| self.over_time(at))));
        blocks.push(Block::fold("Intervals and counts", self.details()));
        blocks
    }

    /// Policies by workload, the longer side downwards.
    fn verdicts(&self) -> Table {
        let policies = || self.done.iter().map(|done| done.policy.name());
        let copy = |done: &PlayedCase| {
            Cell::from(done.beside.map_or_else(String::new, |at| format!("{:.0}", at.per_s)))
        };
        let has_copy = self.done.iter().any(|done| done.beside.is_some());
        let copy_heading = has_copy.then(|| Column::number("copy, requests/s"));
        if self.tenants().len() > self.done.len() {
            let headings = [Column::name("workload"), Column::name("SLO")];
            let mut table = Table::new(headings.into_iter().chain(policies().map(Column::name)));
            for at in self.tenants() {
                let slo = self.view.planned.cases[self.number].slos[at].to_string();
                let cells = self.done.iter().map(|done| self.verdict(done, at));
                table.push([self.name(at).into(), slo.into()].into_iter().chain(cells));
            }
            if has_copy {
                let start = [Cell::from("copy, requests/s"), Cell::from("")];
                table.push(start.into_iter().chain(self.done.iter().map(|done| copy(done))));
            }
            return table;
        }
        let slos = &self.view.planned.cases[self.number].slos;
        let headings = self.tenants().map(|at| Column::name(format!("{}: {}", self.name(at), slos[at])));
        let mut table = Table::new([Column::name("policy")].into_iter().chain(headings).chain(copy_heading));
        for done in &self.done {
            let cells = self.tenants().map(|at| self.verdict(done, at));
            let copy = has_copy.then(|| copy(done));
            table.push([Cell::from(done.policy.name())].into_iter().chain(cells).chain(copy));
        }
        table
    }

    /// The name of a tenant, with a star where it has no guarantee.
    fn name(&self, tenant: usize) -> String {
        let star = if self.view.planned.cases[self.number].promises(tenant) { "" } else { "*" };
        format!("{}{star}", self.tenant(tenant))
    }

    fn verdict(&self, done: &PlayedCase, tenant: usize) -> Cell {
        let found = &done.rows[tenant].finding;
        let row = verdict_row(found);
        let end = if found.is_spoiled() { &row[1] } else { &row[4] };
        Cell::keyed(format!("{} ({end})", row[3]), found.judgement.measured_s.unwrap_or(f64::INFINITY))
            .status(latency::status(found))
    }

    fn percentiles(&self) -> Dots {
        let slo = self.done[0].rows[0].judgement.percentile;
        let chart = Dots::new(
            "Latency by percentile, beside the SLO",
            latency::axis(),
            PERCENTILES.map(|percent| format!("p{percent}")),
            "SLO",
        )
        .note(format!("The SLO is one of p{slo}: it is met where the mark of p{slo} is left of the bar."));
        let rows = self.tenants().flat_map(|at| (0..self.done.len()).map(move |done| (at, done)));
        rows.fold(chart, |chart, (at, done)| {
            let name = format!("{} {}", self.name(at), self.done[done].policy.name());
            let seen = &self.seen[done][at];
            chart.row(name, percentiles(seen), self.done[done].rows[at].judgement.slo_s)
        })
    }

    fn distribution(&self, tenant: usize) -> Block {
        let line = |(done, seen): (&&PlayedCase, &Vec<ObservedLatencies>)| {
            let points = verify::exceedance(seen[tenant].iter().map(|(_, latency)| *latency));
            (done.policy.name().to_owned(), points, Some(slot(done.policy)))
        };
        let title = format!("{}: share that takes longer", self.name(tenant));
        let lines = self.done.iter().zip(&self.seen).map(line);
        latency::distribution(title, &self.done[0].rows[tenant].finding, lines).into()
    }

    /// Latencies under the policy that protects least and the one that protects, on one scale.
    fn over_time(&self, tenant: usize) -> Vec<Block> {
        let protected = self.done.iter().position(|done| done.policy == PolicyName::Tailwright);
        let other = (0..self.done.len()).find(|at| Some(*at) != protected);
        let both: Vec<usize> = other.into_iter().chain(protected).collect();
        let slo = self.done[0].rows[tenant].judgement.slo_s;
        let mut low = slo;
        let mut high = slo;
        for (_, latency) in both.iter().flat_map(|&at| &self.seen[at][tenant]) {
            if let Some(latency) = latency.map(Nanos::as_secs) {
                (low, high) = (low.min(latency), high.max(latency));
            }
        }
        let mut charts = Vec::new();
        for at in both {
            let title = format!("{} over time: {}", self.name(tenant), self.done[at].policy.name());
            let found = &self.done[at].rows[tenant].finding;
            let axis = latency::axis().min(low).max(high * 1.1);
            charts.push(latency::over_time(title, axis, found, &self.seen[at][tenant]).into());
        }
        charts
    }

    fn details(&self) -> Vec<Block> {
        let all = || self.tenants().flat_map(|at| self.done.iter().map(move |done| (at, *done)));
        let name = |at: usize, done: &PlayedCase| format!("{} {}", self.name(at), done.policy.name());
        let rows = all().map(|(at, done)| {
            let mut row = verdict_row(&done.rows[at].finding);
            row[0] = name(at, done);
            row
        });
        let intervals = all().map(|(at, done)| (name(at, done), &done.rows[at].finding));
        vec![latency::intervals(intervals).into(), table(&VERDICTS, 3, rows.collect()).into()]
    }
}

/// A policy looks the same in all charts. Colours and dashes of 0 and 5 are much alike.
fn slot(policy: PolicyName) -> usize {
    match policy {
        PolicyName::Tailwright => 0,
        PolicyName::Proportional => 1,
        PolicyName::Feedback => 2,
        PolicyName::Edf => 3,
        PolicyName::BySlo => 4,
        PolicyName::None => 6,
    }
}

/// The latencies at [`PERCENTILES`]; none where that request got no answer. Requests without one count as infinitely late.
fn percentiles(seen: &ObservedLatencies) -> Vec<Option<f64>> {
    let mut sorted: Vec<Option<Nanos>> = seen.iter().map(|(_, latency)| *latency).collect();
    sorted.sort_unstable_by_key(|latency| latency.unwrap_or(Nanos(u64::MAX)));
    let at = |percent: f64| match sorted.len() {
        0 => None,
        count => sorted[confidence::nearest_rank(percent, count) - 1].map(Nanos::as_secs),
    };
    PERCENTILES.map(at).to_vec()
}

fn played(view: &ExperimentView) -> Vec<Block> {
    let planned = view.planned;
    let place = match planned.experiment.bottleneck {
        Bottleneck::Device => format!(
            "asks for its volume by NBD; a proxy on the host of the device decides by the policy. The device is an {}. It \
             answers every request when its model says, from memory.",
            planned.setting()
        ),
        Bottleneck::Link => format!(
            "asks for what it reads on one connection; queues of the kernel on the servers' host decide by the policy. \
             What is short is {}.",
            planned.setting()
        ),
    };
    let hosts = format!("Each workload has a host of its own (a network namespace) and {place}");
    let mut blocks = vec![Block::paragraph(hosts)];
    let tenants = || planned.cases.iter().flat_map(|case| case.case.tenants);
    if tenants().any(|tenant| matches!(tenant.source, TenantSource::Trace(_))) {
        blocks.push(Block::paragraph(
            "The traces of the thesis are not public; in their place are public traces of the same burstiness. Their \
             times are multiplied by the time scale, so that their work is the load of the paper on this device; sizes, \
             order and relative gaps stay.",
        ));
    }
    for case in &planned.cases {
        let caption = format!("{}: {}", case_name(planned, case), admits(case));
        blocks.push(table(&PLAN, 1, plan_rows(case)).caption(caption).into());
        if let Some((who, load)) = case.case.misbehaves {
            blocks.push(Block::paragraph(format!(
                "* {} asks for {:.0}% of the device in place of {:.0}%: its SLO is not judged.",
                case.case.tenants[who].name,
                load * 100.0,
                case.case.tenants[who].load * 100.0
            )));
        }
    }
    if planned.cases.iter().any(|case| !case.admits_all) {
        blocks.push(Block::paragraph(
            "* Workloads that the analysis refuses are served last and have no guarantee; their SLOs are not judged.",
        ));
    }
    if let Some(copy) = planned.experiment.copy {
        blocks.push(Block::paragraph(format!(
            "Beside them, a copy without an SLO keeps {} reads of {} outstanding.",
            copy.in_flight, copy.size
        )));
    }
    blocks
}

fn how_to_read(view: &ExperimentView) -> Vec<Block> {
    let experiment = &view.planned.experiment;
    let beside = if experiment.copy.is_some() { " and the copy" } else { "" };
    let bound = match experiment.bottleneck {
        Bottleneck::Device => "the latency that no request exceeds",
        Bottleneck::Link => "the latency that the 99th percentile does not exceed",
    };
    let slos = match experiment.cases[0].slos {
        SloRule::Requested(_) => {
            "SLOs are those of the paper, ten times as long, because the link has a tenth of its bandwidth"
        }
        _ => "SLOs are set from the bounds (docs/reference/lab.md says how)",
    };
    vec![
        Block::paragraph(format!(
            "Latency counts from the time at which a request was meant to be sent, whatever happened to those before it. \
             With 95% confidence the true percentile lies in the interval in brackets. Met (✓): all of the interval is \
             within the SLO. Not met (✕): all of it is beyond. Open (!): the SLO lies in it, or requests were sent too \
             late. All policies serve the same requests{beside}, one policy after the other."
        )),
        Block::paragraph(format!(
            "SLOs and the policy tailwright are set before anything is measured. A bound is {bound}, by the analysis. \
             {slos}. So what is measured is whether the latencies stay within what the analysis predicts, and what other \
             policies do to the same SLOs. These are single runs on one machine; another seed or machine gives other \
             numbers."
        )),
    ]
}
