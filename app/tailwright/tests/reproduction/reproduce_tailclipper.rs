//! `tailwright reproduce tailclipper-…`: claims with their rules, and the same figures for the same seed.

use crate::support::Folder;
use serde_json::Value;

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

#[test]
fn the_answer_of_call_chains_is_there_for_all_that_is_open() {
    let found = play("tailclipper-fig-7");
    let changes = found["plots"]
        .as_array()
        .expect("plots")
        .iter()
        .filter(|plot| plot["title"].as_str().expect("title").contains("against the cap without age"));
    let mut lines: Vec<Value> = Vec::new();
    changes.for_each(|plot| lines.extend(plot["lines"].as_array().expect("lines").clone()));
    assert_eq!(lines.len(), 6, "two chains with three readings of three cores");
    assert!(lines.iter().all(|line| line["points"].as_array().expect("points").len() == 3), "{lines:?}");
    for printed in ["−52 %", "−9 %"] {
        let open = claims(&found, printed);
        assert_eq!(open.len(), 9);
        assert!(open.iter().all(|claim| claim["verdict"] == "underspecified"), "{open:?}");
    }
    // Chain 1's first tier is busy for 90 % of the time, and round-robin makes all wait for all.
    for spread in ["1", "2", "3"] {
        let said = format!("chain 1, {spread} ms, three processors: P99 lower than Shinjuku's");
        assert_eq!(claims(&found, &said)[0]["verdict"], "agree", "{found}");
    }
    for claim in claims(&found, "age adds at most 5 %") {
        assert_eq!((&claim["source"], &claim["verdict"]), (&"ours".into(), &"agree".into()), "{claim}");
    }
}
