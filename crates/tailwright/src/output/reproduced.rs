//! Claims of the papers beside what was found, as a table and as JSON.

use crate::output::json::pretty;
use crate::terminal::{Align, TextTable};
use reproduce::{Agreement, Claim, Paper, PaperExperiment, ReproducedFigure};
use serde::Serialize;
use std::path::PathBuf;

/// An experiment that was run, or what it needs and did not find.
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

    fn count(&self, verdict: Agreement) -> usize {
        self.claims().filter(|claim| claim.agreement == verdict).count()
    }
}

/// A verdict in a word.
pub(crate) fn word(verdict: Agreement) -> &'static str {
    match verdict {
        Agreement::Agree => "agree",
        Agreement::Differ => "differ",
        Agreement::Underspecified => "underspecified",
    }
}

/// The table of the experiments that there are.
pub(crate) fn list(experiments: &[PaperExperiment]) -> String {
    let mut table = TextTable::new(&[("name", Align::Left), ("paper", Align::Left), ("what", Align::Left)]);
    for one in experiments {
        table.row(vec![one.name.to_owned(), one.paper.title().to_owned(), one.title.to_owned()]);
    }
    table.render()
}

/// A sentence: how many claims came out how.
pub(crate) fn lead(view: &ReproductionView) -> String {
    let count = |verdict| view.count(verdict);
    let quick = if view.quick { ", a twentieth of the requests" } else { "" };
    format!(
        "{} claims: {} agree, {} differ, {} are underspecified; seed {}{quick}; ± are 95 % confidence intervals.",
        view.claims().count(),
        count(Agreement::Agree),
        count(Agreement::Differ),
        count(Agreement::Underspecified),
        view.seed
    )
}

/// What an experiment needs and did not find.
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
            Ok(figure) => {
                let mut table =
                    TextTable::new(&[("  ", Align::Left), ("the paper", Align::Left), ("here", Align::Left)]);
                for claim in &figure.claims {
                    table.row(vec![
                        format!("  {}", word(claim.agreement)),
                        claim.statement.clone(),
                        claim.found_text.clone(),
                    ]);
                }
                text.push_str(&table.render());
            }
        }
        text.push('\n');
    }
    format!("{text}{}\n", lead(view))
}

#[derive(Serialize)]
struct ReproductionDocument<'a> {
    seed: u64,
    quick: bool,
    agree: usize,
    differ: usize,
    underspecified: usize,
    experiments: Vec<ExperimentDocument<'a>>,
}

#[derive(Serialize)]
struct ExperimentDocument<'a> {
    name: &'a str,
    paper: Paper,
    title: &'a str,
    /// What it needs and did not find.
    missing: Option<&'a PathBuf>,
    #[serde(flatten)]
    figure: Option<&'a ReproducedFigure>,
}

/// One object: all experiments with their figures and claims.
pub(crate) fn json(view: &ReproductionView) -> String {
    pretty(&ReproductionDocument {
        seed: view.seed,
        quick: view.quick,
        agree: view.count(Agreement::Agree),
        differ: view.count(Agreement::Differ),
        underspecified: view.count(Agreement::Underspecified),
        experiments: view.done.iter().map(entry).collect(),
    })
}

fn entry(done: &ReproducedExperiment) -> ExperimentDocument<'_> {
    ExperimentDocument {
        name: done.experiment.name,
        paper: done.experiment.paper,
        title: done.experiment.title,
        missing: done.outcome.as_ref().err(),
        figure: done.outcome.as_ref().ok(),
    }
}
