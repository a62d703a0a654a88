//! `tailwright reproduce thesis`: the claims that name PriorityMeister, on real traces where they are present.

use crate::support::Folder;

#[test]
fn the_thesis_is_drawn_again() {
    let Some(traces) = testkit::shared("traces/trace0042.csv.gz") else { return };
    let data =
        traces.parent().and_then(|traces| traces.parent()).expect("two folders up").display().to_string();
    let folder = Folder::new();
    let found =
        folder.run(&["reproduce", "thesis", "--quick", "--json", "--data", &data]).expect_code(0).stdout;
    for name in [
        "thesis-fig-3-3",
        "thesis-fig-3-5",
        "thesis-fig-3-6",
        "thesis-fig-3-9",
        "thesis-fig-5-4",
        "thesis-fig-5-5",
        "thesis-fig-5-9",
    ] {
        assert!(found.contains(name), "{name}");
    }
    let text = folder.run(&["reproduce", "thesis-fig-3-3", "--quick", "--data", &data]).expect_code(0).stdout;
    let meister = text.lines().find(|line| line.contains("PriorityMeister keeps all")).expect("the claim");
    // The bounds hold for every alignment, so for every seed.
    assert!(meister.trim_start().starts_with("agree"), "{meister}");
}

#[test]
fn traces_that_are_not_there_are_said() {
    let folder = Folder::new();
    let outcome = folder.run(&["reproduce", "thesis-fig-3-3", "--quick"]).expect_code(1);
    assert!(outcome.stdout.contains("trace0039"), "{}", outcome.stdout);
}
