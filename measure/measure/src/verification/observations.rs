//! Files of observations of one run, whichever of its clients wrote them.

use model::{NAME_EXPECTED, Observations, OperationError, is_usable_name};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Reads the observations of one run from all its files.
///
/// # Errors
///
/// When there are no files or no requests, a file cannot be read, or the files are not of one run.
pub fn read_observations(paths: &[&Path]) -> Result<Observations, OperationError> {
    if paths.is_empty() {
        return Err(OperationError::input(
            "there are no observations: expected OBSERVATIONS.parquet, or --load-file",
        )
        .hint("`tailwright simulate POLICY.json -o FILE.parquet` and `tailwright load -o` write some"));
    }
    let mut all: Option<Observations> = None;
    for (index, path) in paths.iter().enumerate() {
        if paths[..index].iter().any(|earlier| is_same_file(earlier, path)) {
            let message = format_args!("{}: the same observations are given twice", path.display());
            return Err(OperationError::input(message).hint("each request counts once: leave one out"));
        }
        check_parquet(path)?;
        let found = trace::observations::read(path).map_err(|error| {
            OperationError::input(&error).hint("docs/reference/verify.md describes the columns")
        })?;
        if let Some(name) = found.workloads.iter().find(|name| !is_usable_name(name)) {
            let path = path.display();
            let message = format_args!("{path}: there is a workload {name:?}: {NAME_EXPECTED}");
            return Err(
                OperationError::input(message).hint("a name in several lines could pretend to be a verdict")
            );
        }
        all = Some(match all {
            None => found,
            Some(before) => merge(before, found, path)?,
        });
    }
    let all = all.unwrap_or_default();
    if all.requests.is_empty() {
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        return Err(OperationError::input(format_args!("{}: there are no requests", names.join(", ")))
            .hint("whatever wrote this has observed nothing; a request without answer has a row, too"));
    }
    if u32::try_from(all.requests.len()).is_err() {
        return Err(OperationError::input("more than 4 billion requests").hint("verify parts of the run"));
    }
    Ok(all)
}

/// The bytes that a Parquet file begins with.
const PARQUET: [u8; 4] = *b"PAR1";

/// Refuses what is a file of something else. What cannot be read is left to the reader to say.
fn check_parquet(path: &Path) -> Result<(), OperationError> {
    if !path.is_file() {
        return Ok(());
    }
    let mut begin = Vec::new();
    let read = File::open(path).and_then(|file| file.take(PARQUET.len() as u64).read_to_end(&mut begin));
    if read.is_err() || begin == PARQUET {
        return Ok(());
    }
    Err(OperationError::input(format_args!(
        "{}: expected observations in Parquet, found something else",
        path.display()
    ))
    .hint("`tailwright simulate POLICY.json -o FILE.parquet`, `load -o` and `observe -o` write such files; a policy ends in .json"))
}

/// Whether two paths lead to one file.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| std::fs::canonicalize(path).ok();
    place(one).is_some_and(|found| place(other) == Some(found))
}

/// Merges in order of intended time; of equal times those of the first file come first.
fn merge(mut first: Observations, second: Observations, path: &Path) -> Result<Observations, OperationError> {
    if first.stages != second.stages {
        return Err(OperationError::input(format_args!(
            "{}: the stages are [{}], those of the files before [{}]",
            path.display(),
            second.stages.join(", "),
            first.stages.join(", ")
        ))
        .hint("expected files of one run, with the same stages"));
    }
    let numbers: Vec<u32> =
        second.workloads.into_iter().map(|name| number_of(&mut first.workloads, name)).collect();
    first.requests.extend(
        second
            .requests
            .into_iter()
            .map(|at| model::Observation { workload: numbers[at.workload as usize], ..at }),
    );
    first.stage_times.extend(second.stage_times);
    let mut order: Vec<usize> = (0..first.requests.len()).collect();
    order.sort_by_key(|row| first.requests[*row].intended);
    let width = first.stages.len();
    let times = order.iter().flat_map(|row| &first.stage_times[row * width..(row + 1) * width]);
    Ok(Observations {
        stage_times: times.copied().collect(),
        requests: order.iter().map(|row| first.requests[*row]).collect(),
        workloads: first.workloads,
        stages: first.stages,
    })
}

/// The number of a name; a name that is new gets a new one.
fn number_of(names: &mut Vec<String>, name: String) -> u32 {
    let place = names.iter().position(|other| *other == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    });
    u32::try_from(place).expect("names were counted by u32 in each file")
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Observation, Op, RequestOutcome};
    use units::{Bytes, Nanos};

    fn some(workloads: &[&str], at: &[(u32, u64)]) -> Observations {
        let request = |(workload, at): &(u32, u64)| Observation {
            workload: *workload,
            op: Op::Read,
            size: Bytes(1),
            intended: Nanos(*at),
            sent: Nanos(*at),
            outcome: RequestOutcome::Done(Nanos(at + 1)),
        };
        Observations {
            workloads: workloads.iter().map(|name| (*name).to_owned()).collect(),
            stages: vec!["disk".to_owned()],
            requests: at.iter().map(request).collect(),
            stage_times: at.iter().map(|(_, at)| Nanos(at * 10)).collect(),
        }
    }

    #[test]
    fn files_of_one_run_are_one() {
        let first = some(&["a", "b"], &[(0, 1), (1, 5)]);
        let second = some(&["c", "a"], &[(1, 3), (0, 5), (1, 9)]);
        let all = merge(first, second, Path::new("x")).unwrap();
        assert_eq!(all.workloads, ["a", "b", "c"]);
        let rows: Vec<_> = all.requests.iter().map(|at| (at.workload, at.intended.0)).collect();
        assert_eq!(rows, [(0, 1), (0, 3), (1, 5), (2, 5), (0, 9)]);
        assert_eq!(all.stage_times, [10, 30, 50, 50, 90].map(Nanos));
    }

    #[test]
    fn files_of_several_runs_are_not() {
        let other = Observations { stages: Vec::new(), stage_times: Vec::new(), ..some(&["a"], &[]) };
        assert!(merge(some(&["a"], &[]), other, Path::new("x")).is_err());
    }
}
