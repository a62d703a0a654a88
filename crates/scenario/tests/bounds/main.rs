//! No request of a workload that keeps its limits exceeds its bound: greedy bursts that come together, and a search for
//! worse ones. `cargo bench -p tailwright-scenario --bench bounds` searches longer and prints how close it came.

mod adversary;

use adversary::{Route, SearchSpace};

fn space(route: Route, channels: u32) -> SearchSpace {
    SearchSpace { route, channels, levels: 7, shares_levels: route == Route::Device, keeps_tokens: true }
}

#[test]
fn no_bound_of_a_device_is_broken() {
    for channels in [1, 2, 4, 16] {
        let (found, attack) = space(Route::Device, channels).search(6, 150);
        assert!(!found.is_broken(), "{channels} channels: {found:?}\n{attack:#?}");
        // A bound that nothing comes near would say nothing about the search.
        assert!(found.ratio > 0.5, "{channels} channels: {found:?}\n{attack:#?}");
    }
}

#[test]
fn no_bound_of_a_link_is_broken() {
    let (found, attack) = space(Route::Link, 1).search(6, 150);
    assert!(!found.is_broken() && found.ratio > 0.5, "{found:?}\n{attack:#?}");
}

#[test]
fn no_bound_of_a_path_is_broken() {
    for channels in [1, 4] {
        let (found, attack) = space(Route::Path, channels).search(4, 150);
        assert!(!found.is_broken(), "{channels} channels: {found:?}\n{attack:#?}");
    }
}
