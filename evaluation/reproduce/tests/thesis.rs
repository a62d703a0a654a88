//! The experiments of the thesis over the recorded workloads, where they are present: each has a figure whose claims are judged,
//! and a seed repeats it.
//!
//! `EFFORT=1 cargo test -p reproduce --test thesis -- --nocapture` prints the claims of the full experiments, and
//! `ONLY=thesis-fig-5` those of some of them.

use reproduce::{Agreement, Context, ReproducedFigure};
use std::path::PathBuf;

/// Effort of `reproduce --quick`.
const QUICK: f64 = 0.05;

fn figure(name: &str, data: Option<PathBuf>, effort: f64, seed: u64) -> Result<ReproducedFigure, String> {
    let experiments = reproduce::all();
    let experiment = experiments.iter().find(|one| one.name == name).expect("an experiment");
    let context = Context { seed, effort, data, progress: &|_, _| (), is_interrupted: &|| false };
    experiment.run(&context).map_err(|error| error.to_string())
}

fn data() -> Option<PathBuf> {
    testkit::shared("traces/ssd-profile.json")?.ancestors().nth(2).map(PathBuf::from)
}

#[test]
fn figures_of_recorded_workloads_have_judged_claims() {
    let Some(data) = data() else { return };
    let effort = std::env::var("EFFORT").ok().and_then(|effort| effort.parse().ok()).unwrap_or(QUICK);
    let only = std::env::var("ONLY").unwrap_or_default();
    for name in ["thesis-fig-3-9", "thesis-fig-5-4", "thesis-fig-5-5", "thesis-fig-5-9"] {
        if !name.starts_with(&only) {
            continue;
        }
        let drawn = figure(name, Some(data.clone()), effort, 1).expect("a figure");
        println!("{name}: {}", drawn.reading);
        assert!(!drawn.claims.is_empty() && drawn.plots.iter().all(|plot| !plot.lines.is_empty()), "{name}");
        for claim in &drawn.claims {
            let agreement = claim.agreement;
            println!("  {agreement:?} {}: {} ({})", claim.statement, claim.found_text, claim.remark);
            assert!(claim.found.is_finite(), "{name}: {}", claim.statement);
            assert!(
                agreement != Agreement::Differ || !claim.remark.is_empty(),
                "{name}: {}",
                claim.statement
            );
        }
        for plot in drawn.plots.iter().filter(|_| std::env::var_os("PLOTS").is_some()) {
            println!("  {}", plot.title);
            plot.lines.iter().for_each(|line| println!("    {} {:?}", line.name, line.points));
        }
    }
}

#[test]
fn a_seed_repeats_the_draws_and_another_changes_them() {
    let Some(data) = data() else { return };
    let drawn = |seed: u64| {
        let figure = figure("thesis-fig-5-9", Some(data.clone()), QUICK, seed).expect("a figure");
        format!("{:?}", figure.plots[0].lines)
    };
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
}

#[test]
fn an_absent_profile_is_named() {
    for name in ["thesis-fig-5-4", "thesis-fig-5-5", "thesis-fig-5-9"] {
        let error = figure(name, None, QUICK, 1).expect_err("no data");
        assert!(error.contains("traces/ssd-profile.json"), "{error}");
    }
}
