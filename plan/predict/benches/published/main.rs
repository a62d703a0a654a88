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
use predict::{PublishedSnc, SncByStage, StageSketch};
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
        // Fewer on the server: storage is busy, and replaying it takes a second per mix.
        let server = support::published(Through::Server).expect("present before");
        replay::print(&PublishedSnc::default(), "link", &link, 300);
        replay::print(&SncByStage::default(), "link", &link, 300);
        replay::print(&PublishedSnc::default(), "server", &server, 60);
        replay::print(&SncByStage::default(), "server", &server, 60);
    }
}

fn percentile(percent: f64) -> Percentile {
    Percentile::new(percent).expect("in range")
}

/// Priorities by position; the first `dependent` are one group.
fn members<'a, S: 'a>(
    sketches: impl Iterator<Item = &'a S>,
    dependent: usize,
    percentile: Percentile,
) -> Vec<ServerMember<'a, S>> {
    let member = |(k, sketch): (usize, &'a S)| ServerMember {
        sketch,
        priority: PerStage::from_fn(|_| u32::try_from(k).expect("few")),
        group: if k < dependent { 0 } else { k + 1 },
        percentile,
    };
    sketches.enumerate().map(member).collect()
}

fn worst_ms(model: &SncByStage, members: &[ServerMember<'_, StageSketch>]) -> f64 {
    let bounds = model.predict(members).into_iter();
    bounds.map(|bound| bound.map_or(f64::INFINITY, |b| b.bound * 1e3)).fold(0.0, f64::max)
}
