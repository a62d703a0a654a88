//! List of the experiments of papers and of the lab, for programs.

use lab::experiment::EXPERIMENTS;
use reproduce::PaperExperiment;
use schemars::JsonSchema;
use serde::Serialize;

/// The experiments that draw figures of papers again.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ReproductionsDocument<'a> {
    /// The experiments in the order in which they are run.
    experiments: &'a [PaperExperiment],
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
    operation::document::document(&ReproductionsDocument { experiments })
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
