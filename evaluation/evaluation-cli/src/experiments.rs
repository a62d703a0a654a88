//! List of the experiments of papers and of the lab, for programs.

use lab::experiment::EXPERIMENTS;
use reproduce::{Paper, PaperExperiment};
use schemars::JsonSchema;
use serde::Serialize;

/// The experiments that draw figures of papers again.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ReproductionsDocument {
    /// The experiments in the order in which they are run.
    experiments: Vec<ReproductionEntry>,
}

#[derive(Serialize, JsonSchema)]
struct ReproductionEntry {
    /// The name by which it is chosen.
    name: &'static str,
    /// The paper that the figure is from.
    paper: Paper,
    /// Title of the figure.
    title: &'static str,
}

/// The experiments of the lab.
#[derive(Serialize, JsonSchema)]
pub(crate) struct LabExperimentsDocument {
    /// The experiments in the order of the table.
    experiments: Vec<LabExperimentEntry>,
}

#[derive(Serialize, JsonSchema)]
struct LabExperimentEntry {
    /// The name by which it is chosen.
    name: &'static str,
    /// Title of the experiment.
    title: &'static str,
    /// Claim of the paper.
    claim: &'static str,
}

/// The experiments of papers as one object.
pub(crate) fn reproductions(experiments: &[PaperExperiment]) -> String {
    let entry =
        |one: &PaperExperiment| ReproductionEntry { name: one.name, paper: one.paper, title: one.title };
    operation::document::document(&ReproductionsDocument {
        experiments: experiments.iter().map(entry).collect(),
    })
}

/// The experiments of the lab as one object.
pub(crate) fn of_lab() -> String {
    let mut experiments = Vec::new();
    for experiment in EXPERIMENTS {
        let name = experiment.name;
        let title = experiment.title;
        let claim = experiment.claim;
        experiments.push(LabExperimentEntry { name, title, claim });
    }
    operation::document::document(&LabExperimentsDocument { experiments })
}
