//! `tailwright reproduce`: what there is, claims with verdicts, a page, data that is not there.

mod support;

use serde_json::Value;
use support::Folder;

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
    let mut counted = [0, 0, 0];
    for one in experiments {
        for field in ["name", "paper", "title", "reading"] {
            assert!(one[field].is_string(), "{field}");
        }
        assert!(one["missing"].is_null() && !one["plots"][0]["lines"][0]["points"].is_null());
        for claim in one["claims"].as_array().expect("claims") {
            let verdict = claim["verdict"].as_str().expect("a verdict");
            let place = ["agree", "differ", "underspecified"].iter().position(|word| *word == verdict);
            counted[place.expect("one of three")] += 1;
            assert!(
                claim["found"].is_f64() && claim["ours"].is_string() && !claim["expected"].is_null(),
                "{claim}"
            );
        }
    }
    assert_eq!(
        [&found["agree"], &found["differ"], &found["underspecified"]].map(Value::as_u64),
        counted.map(Some)
    );
    // By theory, whatever chance does: M/D/1 does not grow tenfold, M/M/1 takes 2.5 times as long, not 250 % longer.
    let tales = experiments.iter().find(|one| one["name"] == "tales-fig-2").expect("both");
    assert_eq!(claim(tales, "by the exact distribution of M/D/1")["verdict"], "differ");
    let numbers = experiments.iter().find(|one| one["name"] == "variability-numbers").expect("both");
    assert_eq!(claim(numbers, "mean of M/M/1 is 2.5ms")["verdict"], "agree");
    assert_eq!(claim(numbers, "M/M/1: an increase of 250 %")["verdict"], "differ");
    let page = folder.read("page.html");
    assert!(page.contains("<svg") && page.contains("Eq. 3") && page.contains("differ"));
    assert_eq!(folder.run(&args).expect_code(0).stdout, outcome.stdout);
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
