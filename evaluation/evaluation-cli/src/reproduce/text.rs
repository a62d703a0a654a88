//! Claims of the papers beside what was found, as a table and as JSON.

use cli::terminal::{Align, TextTable};
use operation::document::document;
use reproduce::{Agreement, Claim, ClaimSource, PaperExperiment, ReproducedFigure};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;
use units::plural;

/// The width of remarks below a claim, in characters.
const REMARK_WIDTH: usize = 90;

/// An experiment that was run, or its missing data.
pub(crate) struct ReproducedExperiment {
    pub(crate) experiment: PaperExperiment,
    pub(crate) outcome: Result<ReproducedFigure, PathBuf>,
}

/// Everything that was run.
pub(crate) struct ReproductionView<'a> {
    pub(crate) done: &'a [ReproducedExperiment],
    pub(crate) seed: u64,
    pub(crate) quick: bool,
}

impl ReproductionView<'_> {
    fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.done.iter().filter_map(|done| done.outcome.as_ref().ok()).flat_map(|figure| &figure.claims)
    }

    /// Counts the verdicts on the claims of one source.
    fn count(&self, source: ClaimSource) -> VerdictCounts {
        let mut counts = VerdictCounts::default();
        for claim in self.claims().filter(|claim| claim.source == source) {
            counts.claims += 1;
            match claim.agreement {
                Agreement::Agree => counts.agree += 1,
                Agreement::Differ => counts.differ += 1,
                Agreement::Undecided => counts.undecided += 1,
                Agreement::Underspecified => counts.underspecified += 1,
            }
        }
        counts
    }
}

/// Number of claims by verdict.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct VerdictCounts {
    claims: usize,
    agree: usize,
    differ: usize,
    undecided: usize,
    underspecified: usize,
}

impl VerdictCounts {
    fn sentence(&self) -> String {
        let Self { claims, agree, differ, undecided, underspecified } = self;
        format!(
            "{}: {agree} agree, {differ} differ, {undecided} undecided, {underspecified} underspecified",
            plural(*claims, "claim")
        )
    }
}

/// A verdict in a word.
pub(crate) fn word(verdict: Agreement) -> &'static str {
    match verdict {
        Agreement::Agree => "agree",
        Agreement::Differ => "differ",
        Agreement::Undecided => "undecided",
        Agreement::Underspecified => "underspecified",
    }
}

/// Formats the table of experiments.
pub(crate) fn list(experiments: &[PaperExperiment]) -> String {
    let mut table = TextTable::new(&[("name", Align::Left), ("paper", Align::Left), ("what", Align::Left)]);
    for one in experiments {
        table.row(vec![one.name.to_owned(), one.paper.title().to_owned(), one.title.to_owned()]);
    }
    table.render()
}

/// Describes the verdicts, those on the papers' claims and on our own separately.
pub(crate) fn lead(view: &ReproductionView) -> String {
    let quick = if view.quick { ", a twentieth of the requests" } else { "" };
    let counted = [("The papers'", ClaimSource::Paper), ("Our own", ClaimSource::Ours)];
    let mut text = String::new();
    for (whose, source) in counted {
        let counts = view.count(source);
        if counts.claims > 0 {
            text.push_str(&format!("{whose} {}. ", counts.sentence()));
        }
    }
    format!("{text}Seed {}{quick}; ± are 95 % confidence intervals.", view.seed)
}

/// Describes a missing input of an experiment.
pub(crate) fn missing(path: &std::path::Path) -> String {
    format!("not run: needs {}; --data says where it is", path.display())
}

/// The table for people.
pub(crate) fn text(view: &ReproductionView) -> String {
    let mut text = String::new();
    for done in view.done {
        text.push_str(&format!("{}: {}\n", done.experiment.name, done.experiment.title));
        match &done.outcome {
            Err(path) => text.push_str(&format!("  {}\n", missing(path))),
            Ok(figure) => text.push_str(&claims_text(&figure.claims)),
        }
        text.push('\n');
    }
    format!("{text}{}\n", lead(view))
}

/// Returns the statement of a claim, marked if it is not a paper's.
pub(crate) fn statement(claim: &Claim) -> String {
    match claim.source {
        ClaimSource::Paper => claim.statement.clone(),
        ClaimSource::Ours => format!("(ours) {}", claim.statement),
    }
}

/// Formats the claims of a figure as a table. A claim that does not agree is followed by its remark, or the
/// last of several in a row that share the remark.
fn claims_text(claims: &[Claim]) -> String {
    let mut table = TextTable::new(&[("  ", Align::Left), ("claim", Align::Left), ("here", Align::Left)]);
    for claim in claims {
        let verdict = format!("  {}", word(claim.agreement));
        table.row(vec![verdict, statement(claim), claim.found_text.clone()]);
    }
    let rendered = table.render_rows();
    let mut rows = rendered.rows.iter();
    let mut text = rows.next().cloned().unwrap_or_default();
    for (index, (row, claim)) in rows.zip(claims).enumerate() {
        text.push_str(row);
        let remark = shown_remark(claim);
        if claims.get(index + 1).is_none_or(|next| shown_remark(next) != remark) {
            text.push_str(&indented(remark));
        }
    }
    text
}

/// The remark of a claim, where it does not agree.
fn shown_remark(claim: &Claim) -> &str {
    if claim.agreement == Agreement::Agree { "" } else { &claim.remark }
}

/// A remark in lines that are indented below its claim.
fn indented(remark: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in remark.split_whitespace() {
        match lines.last_mut().filter(|line| line.chars().count() + word.chars().count() < REMARK_WIDTH) {
            Some(line) => line.push_str(&format!(" {word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines.into_iter().map(|line| format!("      {line}\n")).collect()
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct ReproductionDocument<'a> {
    seed: u64,
    quick: bool,
    papers: VerdictCounts,
    ours: VerdictCounts,
    experiments: Vec<ExperimentDocument<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct ExperimentDocument<'a> {
    #[serde(flatten)]
    experiment: &'a PaperExperiment,
    /// Input that the experiment did not find.
    missing: Option<&'a PathBuf>,
    #[serde(flatten)]
    figure: Option<&'a ReproducedFigure>,
}

/// One object: all experiments with their figures and claims.
pub(crate) fn json(view: &ReproductionView) -> String {
    document(&ReproductionDocument {
        seed: view.seed,
        quick: view.quick,
        papers: view.count(ClaimSource::Paper),
        ours: view.count(ClaimSource::Ours),
        experiments: view.done.iter().map(entry).collect(),
    })
}

fn entry(done: &ReproducedExperiment) -> ExperimentDocument<'_> {
    ExperimentDocument {
        experiment: &done.experiment,
        missing: done.outcome.as_ref().err(),
        figure: done.outcome.as_ref().ok(),
    }
}
