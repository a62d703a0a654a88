//! Real traffic of a workload, against its limits.

use crate::pages::requests::sentence;
use crate::pages::server::words;
use crate::pages::text::{percent, time};
use controller::{LiveLimit, LiveTraffic};
use plot::{Block, Cell, Column, KeyFigure, Status, Table, Unit};

/// Returns the blocks of a workload with this traffic. `said` is what the page says of it already.
pub(super) fn traffic(live: &LiveTraffic, said: &str) -> Vec<Block> {
    let mut facts = Vec::new();
    if let Some(hour) = live.windows.first() {
        for limit in &hour.limits {
            if let Some(share) = limit.burst_share {
                let name = format!("of the burst of {}, last {}", words(limit.stage), time(hour.window_s));
                facts.push(KeyFigure::new(percent(share), name).status(status(limit)));
            }
        }
    }
    let how = "Least limits that would have delayed nothing of what its clients sent, as the proxy saw them: the burst at the \
               promised rate, or the rate at the promised burst. No safety margin is in them.";
    let mut table = Table::new([
        Column::name("last"),
        Column::name("stage"),
        Column::number("mean rate"),
        Column::number("promised rate"),
        Column::number("rate needed"),
        Column::number("promised burst"),
        Column::number("burst needed"),
        Column::number("share of the burst"),
    ]);
    let mut requests = 0;
    for window in &live.windows {
        // A longer window without other traffic says nothing new.
        let before = std::mem::replace(&mut requests, window.requests);
        if before == requests {
            continue;
        }
        for limit in &window.limits {
            let share = |value: f64| Cell::keyed(percent(value), value);
            let none = || Cell::text("–");
            table.push([
                Cell::text(time(window.window_s)),
                Cell::text(words(limit.stage)),
                share(limit.mean_rate),
                share(limit.rate),
                limit.rate_needed.map_or_else(|| Cell::text("none"), share),
                Cell::number(limit.burst, Unit::Seconds),
                Cell::number(limit.burst_needed, Unit::Seconds),
                limit.burst_share.map_or_else(none, |of| share(of).status(status(limit))),
            ]);
        }
    }
    let mut blocks = vec![facts.into()];
    if !said.contains(&live.summary) {
        blocks.push(Block::paragraph(sentence(&live.summary)));
    }
    blocks.extend([table.into(), Block::paragraph(how)]);
    blocks
}

fn status(limit: &LiveLimit) -> Status {
    if limit.is_outgrown() { Status::Warn } else { Status::Good }
}
