//! Files of observations: of one run, whoever of its clients wrote them.

use model::{Observations, OperationError};
use std::path::{Path, PathBuf};

/// The policy, if there is one, and the observations.
pub(super) fn sorted(files: &[PathBuf]) -> Result<(Option<&Path>, Vec<&Path>), OperationError> {
    let is_policy = |path: &&Path| path.extension().is_some_and(|ending| ending == "json");
    let (policies, observations): (Vec<&Path>, Vec<&Path>) =
        files.iter().map(PathBuf::as_path).partition(is_policy);
    if let [_, second, ..] = policies[..] {
        return Err(OperationError::input(format_args!("{}: expected at most one policy", second.display())));
    }
    Ok((policies.first().copied(), observations))
}

/// All files together.
pub(super) fn read(paths: &[&Path]) -> Result<Observations, OperationError> {
    if paths.is_empty() {
        return Err(OperationError::input(
            "there are no observations: expected OBSERVATIONS.parquet, or --load",
        )
        .hint("`tailwright simulate POLICY.json -o FILE.parquet` and `tailwright load -o` write some"));
    }
    let mut all: Option<Observations> = None;
    for path in paths {
        let found = trace::observations::read(path)
            .map_err(|error| OperationError::input(&error).hint("docs/verify.md describes the columns"))?;
        all = Some(match all {
            None => found,
            Some(before) => together(before, found, path)?,
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

/// In order of intended time; of equal times those of the first file first.
fn together(
    mut first: Observations,
    second: Observations,
    path: &Path,
) -> Result<Observations, OperationError> {
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
        second.workloads.into_iter().map(|name| number(&mut first.workloads, name)).collect();
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

/// The number of a name, a new one for a new name.
fn number(names: &mut Vec<String>, name: String) -> u32 {
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
        let (first, second) =
            (some(&["a", "b"], &[(0, 1), (1, 5)]), some(&["c", "a"], &[(1, 3), (0, 5), (1, 9)]));
        let all = together(first, second, Path::new("x")).unwrap();
        assert_eq!(all.workloads, ["a", "b", "c"]);
        let rows: Vec<_> = all.requests.iter().map(|at| (at.workload, at.intended.0)).collect();
        assert_eq!(rows, [(0, 1), (0, 3), (1, 5), (2, 5), (0, 9)]);
        assert_eq!(all.stage_times, [10, 30, 50, 50, 90].map(Nanos));
    }

    #[test]
    fn files_of_several_runs_are_not() {
        let other = Observations { stages: Vec::new(), stage_times: Vec::new(), ..some(&["a"], &[]) };
        assert!(together(some(&["a"], &[]), other, Path::new("x")).is_err());
    }
}
