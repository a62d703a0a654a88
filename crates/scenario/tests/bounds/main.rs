//! No request of a workload that keeps its limits exceeds its bound: greedy bursts that come together, and a search for
//! worse ones. `cargo bench -p tailwright-scenario --bench bounds` searches longer and prints how close it came.

mod adversary;
mod planned;
mod played;
mod predicted;

use adversary::{Attack, AttackedPath, SearchSpace};
use planned::search_plans;
use played::BoundAttack as _;
use predicted::search_predictions;

fn space(route: AttackedPath, channels: u32) -> SearchSpace {
    SearchSpace {
        route,
        channels,
        levels: 7,
        shares_levels: true,
        spares_overtakers: true,
        keeps_tokens: true,
    }
}

#[test]
fn no_bound_of_a_device_is_broken() {
    for channels in [1, 2, 4, 16] {
        let (found, attack) = space(AttackedPath::Device, channels).search(3, 60);
        assert!(!found.is_broken(), "{channels} channels: {found:?}\n{attack:#?}");
        // A bound that nothing comes near would say nothing about the search.
        assert!(found.ratio > 0.5, "{channels} channels: {found:?}\n{attack:#?}");
    }
}

#[test]
fn no_bound_of_a_link_is_broken() {
    let (found, attack) = space(AttackedPath::Link, 1).search(4, 100);
    assert!(!found.is_broken() && found.ratio > 0.5, "{found:?}\n{attack:#?}");
}

#[test]
fn no_bound_of_a_path_is_broken() {
    for channels in [1, 2, 4] {
        let (found, attack) = space(AttackedPath::Path, channels).search(3, 80);
        assert!(!found.is_broken(), "{channels} channels: {found:?}\n{attack:#?}");
    }
}

/// HTB fills a bucket up to its burst while its workload waits for others, and no further.
#[test]
fn a_link_breaks_bounds_where_tokens_are_lost_again_and_again() {
    let found = Attack::held_up(3, 0.00042).play();
    assert!(found.is_broken(), "{found:?}");
}

#[test]
fn a_workload_may_be_held_up_twice() {
    let found = Attack::held_up(2, 0.0021).play();
    assert!(!found.is_broken(), "{found:?}");
    assert!(found.ratio > 0.8, "{found:?}");
}

/// The bounds are those that the planner computes, the limits those that it chose.
#[test]
fn no_bound_of_a_plan_is_broken() {
    for channels in [1, 3] {
        let (found, attack) = search_plans(channels, 6, 40);
        assert!(!found.is_broken(), "{channels} channels: {found:?}\n{attack:#?}");
        assert!(found.ratio > 0.2, "{channels} channels: {found:?}\n{attack:#?}");
    }
}

/// The bounds and limits are those of `admit` and `plan --model worst-case`.
#[test]
fn no_bound_of_a_prediction_is_broken() {
    for channels in [1, 3] {
        let (found, attack) = search_predictions(channels, 8, 40);
        assert!(!found.is_broken(), "{channels} channels: {found:?}\n{attack:#?}");
        assert!(found.ratio > 0.2, "{channels} channels: {found:?}\n{attack:#?}");
    }
}
