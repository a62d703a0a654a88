//! `tailwright reproduce tailclipper-…`: claims with their rules, and the same figures for the same seed.

mod support;

use serde_json::Value;
use support::Folder;

fn play(name: &str) -> Value {
    let folder = Folder::new();
    let found = folder.run(&["reproduce", name, "--quick", "--json"]).expect_code(0).json();
    let experiments = found["experiments"].as_array().expect("experiments");
    assert_eq!(experiments.len(), 1);
    experiments[0].clone()
}

fn claims(experiment: &Value, part: &str) -> Vec<Value> {
    let all = experiment["claims"].as_array().expect("claims");
    all.iter().filter(|claim| claim["said"].as_str().expect("said").contains(part)).cloned().collect()
}

#[test]
fn reordering_grows_with_variability_and_rate() {
    let found = play("tailclipper-fig-2");
    assert_eq!(found["plots"].as_array().expect("plots").len(), 2);
    for line in found["plots"][0]["lines"].as_array().expect("lines") {
        let points = line["points"].as_array().expect("points");
        assert_eq!(points.len(), 6, "{line}");
        assert!(
            points.iter().all(|point| (0.0..=1.0).contains(&point[1].as_f64().expect("share"))),
            "{line}"
        );
    }
    for claim in [claims(&found, "more are reordered"), claims(&found, "grows with the rate")].concat() {
        assert_eq!(claim["verdict"], "agree", "{claim}");
    }
    // What it was set by judges nothing.
    assert_eq!(claims(&found, "40 %")[0]["verdict"], "underspecified");
}

#[test]
fn beyond_what_can_be_served_points_are_drawn_and_the_cap_is_there() {
    let found = play("tailclipper-fig-10");
    let lines = found["plots"][0]["lines"].as_array().expect("lines");
    let names: Vec<&str> = lines.iter().map(|line| line["name"].as_str().expect("name")).collect();
    assert_eq!(names, ["round-robin", "fair", "limited", "orf"]);
    for line in lines {
        let points = line["points"].as_array().expect("points");
        assert_eq!(points.len(), 4, "{line}");
        // 600/s come; costs and other work leave less than that.
        assert!(
            points.iter().all(|point| (300.0..600.0).contains(&point[1].as_f64().expect("rate"))),
            "{line}"
        );
    }
    assert_eq!(claims(&found, "exponential: the cap without age")[0]["verdict"], "agree");
}
