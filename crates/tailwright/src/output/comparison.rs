//! The same problem planned by other methods.

use crate::input::{Footprints, Problem};
use crate::planning::{Planned, Recipe, plan};
use crate::terminal::{Align, Table};
use model::OperationError;
use plan::LimitMethod;
use serde::Serialize;

/// What a plan is compared with.
const BASELINES: [LimitMethod; 5] = [
    LimitMethod::Relaxed,
    LimitMethod::EffectiveBest,
    LimitMethod::EffectiveEven,
    LimitMethod::Knee,
    LimitMethod::Average(1.5),
];

/// One method's answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Compared {
    pub(crate) policy_name: String,
    pub(crate) servers_used: usize,
    pub(crate) workloads_admitted: usize,
    pub(crate) cpu_s: f64,
}

impl Compared {
    fn of(planned: &Planned) -> Self {
        Self {
            policy_name: planned.recipe.method.name(),
            servers_used: planned.placement.servers.len(),
            workloads_admitted: planned.admitted(),
            cpu_s: planned.cpu.as_secs_f64(),
        }
    }
}

/// The plan itself, then the baselines.
pub(crate) fn compare(
    problem: &Problem,
    footprints: &Footprints,
    planned: &Planned,
) -> Result<Vec<Compared>, OperationError> {
    let mut rows = vec![Compared::of(planned)];
    for method in BASELINES.into_iter().filter(|method| *method != planned.recipe.method) {
        let recipe = Recipe { effort: planned.recipe.effort, ..Recipe::of(method) };
        rows.push(Compared::of(&plan(problem, footprints, &recipe, None)?));
    }
    Ok(rows)
}

/// As a table for people.
pub(crate) fn table(rows: &[Compared], workloads: usize) -> String {
    let mut table = Table::new(&[
        ("policy", Align::Left),
        ("servers", Align::Right),
        ("admitted", Align::Right),
        ("CPU", Align::Right),
    ]);
    for row in rows {
        table.row(vec![
            row.policy_name.clone(),
            row.servers_used.to_string(),
            format!("{} of {workloads}", row.workloads_admitted),
            crate::output::time(row.cpu_s),
        ]);
    }
    table.render()
}
