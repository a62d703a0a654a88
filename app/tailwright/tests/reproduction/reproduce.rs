//! `tailwright reproduce`: what there is, claims with verdicts, a page, data that is not there.

use crate::support::Folder;
use serde_json::Value;

#[test]
fn everything_is_listed_and_unknown_names_are_said() {
    let folder = Folder::new();
    let list = folder.run(&["reproduce", "--list"]).expect_code(0).stdout;
    for name in ["tales-fig-1", "tales-fig-4", "variability-numbers", "variability-fig-1", "calibration-nvme"]
    {
        assert!(list.contains(name), "{name} in {list}");
    }
    let some = folder.run(&["reproduce", "tales", "--list"]).expect_code(0).stdout;
    assert!(some.contains("tales-fig-2") && !some.contains("variability"), "{some}");
    let unknown = folder.run(&["reproduce", "tale-fig-1"]).expect_code(2);
    assert!(
        unknown.stderr.contains("'tale-fig-1'") && unknown.stderr.contains("--list"),
        "{}",
        unknown.stderr
    );
}

fn claim<'a>(experiment: &'a Value, said: &str) -> &'a Value {
    let claims = experiment["claims"].as_array().expect("claims");
    let found = claims.iter().find(|claim| claim["said"].as_str().is_some_and(|text| text.contains(said)));
    found.unwrap_or_else(|| panic!("no claim says '{said}': {claims:#?}"))
}

const VERDICTS: [&str; 4] = ["agree", "differ", "undecided", "underspecified"];

#[test]
fn claims_have_verdicts_and_a_seed_repeats() {
    let folder = Folder::new();
    let args =
        ["reproduce", "variability-numbers", "tales-fig-2", "--quick", "--json", "--report", "page.html"];
    let outcome = folder.run(&args).expect_code(0);
    let found = outcome.json();
    assert!(found["seed"] == 1 && found["quick"] == true, "{found}");
    let experiments = found["experiments"].as_array().expect("experiments");
    assert_eq!(experiments.len(), 2);
    let mut counted = [[0; 4]; 2];
    for one in experiments {
        for field in ["name", "paper", "title", "reading"] {
            assert!(one[field].is_string(), "{field}");
        }
        assert!(one["missing"].is_null() && !one["plots"][0]["lines"][0]["points"].is_null());
        for claim in one["claims"].as_array().expect("claims") {
            let verdict = claim["verdict"].as_str().expect("a verdict");
            let place = VERDICTS.iter().position(|word| *word == verdict).expect("one of four");
            let whose = ["paper", "ours"].iter().position(|source| claim["source"] == *source);
            counted[whose.expect("one of two")][place] += 1;
            assert!(verdict != "differ" || claim["remark"] != "", "{claim}");
            assert!(
                claim["found"].is_f64() && claim["ours"].is_string() && !claim["expected"].is_null(),
                "{claim}"
            );
        }
    }
    for (whose, counted) in ["papers", "ours"].into_iter().zip(counted) {
        assert_eq!(VERDICTS.map(|verdict| found[whose][verdict].as_u64()), counted.map(Some));
        assert_eq!(found[whose]["claims"].as_u64(), Some(counted.iter().sum()));
    }
    // By theory, whatever chance does: M/M/1 takes 2.5 times as long, not 250 % longer.
    let tales = experiments.iter().find(|one| one["name"] == "tales-fig-2").expect("both");
    assert_eq!(claim(tales, "p99 at 0.5 by the exact distribution")["source"], "ours");
    let numbers = experiments.iter().find(|one| one["name"] == "variability-numbers").expect("both");
    assert_ne!(claim(numbers, "mean of M/M/1 is 2.5ms")["verdict"], "differ");
    assert_eq!(claim(numbers, "M/M/1: an increase of 250 %")["verdict"], "differ");
    let page = folder.read("page.html");
    assert!(page.contains("<svg") && page.contains("Eq. 3") && page.contains("differ"));
    assert_eq!(folder.run(&args).expect_code(0).stdout, outcome.stdout);
}

/// What differs is explained, or it is said that no reason is known, in the terminal as on the page.
#[test]
fn remarks_are_shown_below_what_does_not_agree() {
    let folder = Folder::new();
    let text = folder.run(&["reproduce", "variability-numbers", "--quick"]).expect_code(0).stdout;
    let lines: Vec<&str> = text.lines().collect();
    let differs: Vec<usize> = (0..lines.len()).filter(|&at| lines[at].starts_with("  differ ")).collect();
    let last = differs.last().expect("M/M/1 does not grow by 250 %");
    assert!(lines[last + 1].starts_with("      the latency is that percentage of the baseline"), "{text}");
    assert!(text.contains("The papers' "), "{text}");
    assert_eq!(text.contains("Our own "), text.contains("(ours)"), "no sentence about none: {text}");
}

/// A relative folder of data is one of the working directory, not of the scenario's.
#[test]
fn data_is_found_by_a_relative_path() {
    let Some(traces) = testkit::shared("traces/trace0042.csv.gz") else { return };
    let folder = Folder::new();
    let data = traces.ancestors().nth(2).expect("two folders up");
    std::os::unix::fs::symlink(data, folder.join("data-here")).expect("a link");
    let args = ["reproduce", "thesis-fig-3-6", "--quick", "--data", "data-here", "--json"];
    let found = folder.run(&args).expect_code(0).json();
    assert!(found["experiments"][0]["missing"].is_null(), "{found}");
}

#[test]
fn data_that_is_not_there_is_said() {
    let folder = Folder::new();
    for data in [&[][..], &["--data", "."]] {
        let outcome = folder.run(&[&["reproduce", "calibration-nvme"], data].concat()).expect_code(1);
        assert!(
            outcome.stdout.contains("not run: needs data/windows_boot_nvme/io.csv.gz"),
            "{}",
            outcome.stdout
        );
        assert!(outcome.stdout.contains("--data"), "{}", outcome.stdout);
    }
    let outcome = folder.run(&["reproduce", "calibration-nvme", "--json"]).expect_code(1).json();
    assert_eq!(outcome["experiments"][0]["missing"], "data/windows_boot_nvme/io.csv.gz");
}
