//! A plan when servers fail, for people, and the policies that then hold as files.

use cli::terminal::{Align, TextTable};
use model::OperationError;
use operation::document::pretty;
use operation::files::write_result;
use operation::text::percent;
use plan::planning::{FailOverMove, PlanRun, PlanSurvival, ServerFailure};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Workloads named in a row of the short form.
const NAMED_MAX: usize = 4;

/// Parses the number of failures that a plan survives.
pub(crate) fn one_failure(text: &str) -> Result<usize, String> {
    match text {
        "1" => Ok(1),
        _ => Err(format!("expected 1, found '{text}': plans survive one failure at a time")),
    }
}

/// Returns the table of failures, and what would help where one is not survived.
pub(crate) fn text(survival: &PlanSurvival, detailed: bool) -> String {
    let mut text = String::new();
    if !survival.idle.is_empty() {
        text.push_str(&format!("kept idle for failures: {}\n", survival.idle.join(", ")));
    }
    if !survival.failures.is_empty() {
        text.push_str(&table(survival, detailed));
    }
    for failure in &survival.failures {
        let lines = not_survived(failure, detailed);
        lines.into_iter().for_each(|line| text.push_str(&format!("not survived: {line}\n")));
    }
    let remedies = survival.remedies_in_words();
    if !remedies.is_empty() {
        text.push_str(&format!("every failure would be survived with {}\n", remedies.join(", or ")));
    }
    text
}

fn table(survival: &PlanSurvival, detailed: bool) -> String {
    let mut table = TextTable::new(&[
        ("if this fails", Align::Left),
        ("goes to", Align::Left),
        ("worst slack", Align::Right),
        ("of", Align::Left),
        ("workloads", Align::Left),
    ]);
    for failure in &survival.failures {
        rows(failure, detailed).into_iter().for_each(|row| table.row(row.to_vec()));
    }
    table.without_first(&["of"]).answered_by(&["goes to", "worst slack", "workloads"]).render()
}

/// A row for each server that workloads go to, and one for those that have no place.
pub(crate) fn rows(failure: &ServerFailure, detailed: bool) -> Vec<[String; 5]> {
    let (slack, tightest) = failure
        .tightest
        .as_ref()
        .map_or_else(Default::default, |it| (percent(it.slack), it.workload.clone()));
    let targets: BTreeSet<&str> = failure.moves.iter().map(|it| it.to.as_str()).collect();
    let mut rows: Vec<[String; 5]> = Vec::new();
    for target in targets {
        let there = failure.moves.iter().filter(|it| it.to == target);
        let names: Vec<&str> = there.map(|FailOverMove { workload, .. }| workload.as_str()).collect();
        let own = [
            failure.fails.clone(),
            target.to_owned(),
            slack.clone(),
            tightest.clone(),
            listed(&names, detailed),
        ];
        rows.push(own);
    }
    let unplaced: Vec<&str> = failure.unplaced.iter().map(|it| it.workload.as_str()).collect();
    if !unplaced.is_empty() {
        let nowhere = "nowhere".to_owned();
        rows.push([
            failure.fails.clone(),
            nowhere,
            String::new(),
            String::new(),
            listed(&unplaced, detailed),
        ]);
    }
    // The first row speaks for the failure.
    for row in rows.iter_mut().skip(1) {
        [0, 2, 3].into_iter().for_each(|column| row[column].clear());
    }
    rows
}

/// A line for each reason for which workloads have no place.
pub(crate) fn not_survived(failure: &ServerFailure, detailed: bool) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for unplaced in &failure.unplaced {
        match reasons.iter_mut().find(|(reason, _)| *reason == unplaced.reason) {
            Some((_, names)) => names.push(&unplaced.workload),
            None => reasons.push((&unplaced.reason, vec![&unplaced.workload])),
        }
    }
    let line = |(reason, names): (&str, Vec<&str>)| {
        format!("if {} fails, {}: {reason}", failure.fails, listed(&names, detailed))
    };
    reasons.into_iter().map(line).collect()
}

fn listed(names: &[&str], detailed: bool) -> String {
    match names.len().saturating_sub(NAMED_MAX) {
        more if more > 1 && !detailed => format!("{} and {more} more", names[..NAMED_MAX].join(", ")),
        _ => names.join(", "),
    }
}

/// Writes the policy after each failure to a file of its own.
pub(crate) fn write_policies(
    folder: &Path,
    run: &PlanRun,
    survival: &PlanSurvival,
) -> Result<(), OperationError> {
    fs::create_dir_all(folder).map_err(|error| {
        OperationError::machine(format_args!("{}: cannot make the folder: {error}", folder.display()))
            .hint("check its permissions and the space left")
    })?;
    let names = file_names(survival.failures.iter().map(|failure| failure.fails.as_str()));
    for ((_, policy), name) in survival.policies(&run.problem, &run.planned).zip(names) {
        write_result(&folder.join(name), &pretty(&policy), "policy")?;
    }
    Ok(())
}

/// Names for the files of failures, each another one on every file system.
fn file_names<'a>(failures: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for failure in failures {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_=.".contains(letter);
        let plain: String =
            failure.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).take(100).collect();
        let numbers = (2..).map(|number| format!("without-{plain}-{number}.json"));
        let mut names_of_it = [format!("without-{plain}.json")].into_iter().chain(numbers);
        let free = names_of_it.find(|name| taken.insert(name.to_lowercase()));
        names.push(free.expect("there are more numbers than failures"));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_has_a_file_of_its_own() {
        let names = file_names(["ssd-1", "zone=a/b", "zone=a b", "SSD-1"].into_iter());
        assert_eq!(
            names,
            [
                "without-ssd-1.json",
                "without-zone=a_b.json",
                "without-zone=a_b-2.json",
                "without-SSD-1-2.json"
            ]
        );
    }
}
