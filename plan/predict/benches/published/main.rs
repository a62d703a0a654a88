//! The published stochastic predictor: its reference figures, its cost as published beside tables and
//! optimised weights, and how often replay exceeds it. With arguments `figures`, `speed`, `replay`, `beside`: only these.

#[path = "../../tests/support/mod.rs"]
mod support;

mod beside;
mod envelopes;
mod figures;
mod replay;
mod speed;

use model::{LatencyModel, PerStage, ServerMember};
use predict::{PublishedSketch, PublishedSnc};
use support::Through;
use units::Percentile;

fn main() {
    let chosen: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let wanted = |name: &str| chosen.is_empty() || chosen.iter().any(|c| c == name);
    let Some(link) = support::published(Through::Link) else { return };
    if wanted("figures") {
        figures::print(&link);
    }
    if wanted("speed") {
        speed::print(&link);
    }
    if wanted("beside") {
        beside::print(&link);
    }
    if wanted("replay") {
        replay::print("link", &link, 300);
        // Fewer: storage is busy, and replaying it takes a second per mix.
        replay::print("server", &support::published(Through::Server).expect("present before"), 60);
    }
}

fn percentile(percent: f64) -> Percentile {
    Percentile::new(percent).expect("in range")
}

/// Priorities by position; the first `dependent` are one group.
fn members<'a>(
    sketches: impl Iterator<Item = &'a PublishedSketch>,
    dependent: usize,
    percentile: Percentile,
) -> Vec<ServerMember<'a, PublishedSketch>> {
    let member = |(k, sketch): (usize, &'a PublishedSketch)| ServerMember {
        sketch,
        priority: PerStage::from_fn(|_| u32::try_from(k).expect("few")),
        group: if k < dependent { 0 } else { k + 1 },
        percentile,
    };
    sketches.enumerate().map(member).collect()
}

fn worst_ms(model: &PublishedSnc, members: &[ServerMember<'_, PublishedSketch>]) -> f64 {
    let bounds = model.predict(members).into_iter();
    bounds.map(|bound| bound.map_or(f64::INFINITY, |b| b.bound * 1e3)).fold(0.0, f64::max)
}
