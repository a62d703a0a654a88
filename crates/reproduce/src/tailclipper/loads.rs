//! Figures 8 and 9: tails, reordering and means against the rate, for four distributions.

use super::grid::{Grid, Measure, exceeds, mean, p99, reordering};
use super::said::{FAIR, LIMITED, ROUND_ROBIN, Said, about, judged};
use super::{COSTS, SETTING};
use crate::claim::{Claim, Expected, number, share, time};
use crate::context::{Context, FigureError};
use crate::figure::{Axis, Figure, Plot, Quantity};

const TAILS: &str = include_str!("../../../../examples/scenarios/tailclipper-fig-8.toml");
const MEANS: &str = include_str!("../../../../examples/scenarios/tailclipper-fig-9.toml");
const LENGTH: &str = "60 s of arrivals from an empty system at every rate: beyond what the workers can do nothing is \
    stationary, and the figures are those of exactly these requests.";

pub(crate) fn tails(context: &Context) -> Result<Figure, FigureError> {
    let grid = Grid::play(context, "tailclipper-fig-8.toml", TAILS)?;
    let mut plots = plots(&grid, "99th percentile", &Axis::log("99th percentile", Quantity::Seconds), p99);
    plots.extend(self::plots(
        &grid,
        "reordering",
        &Axis::linear("reordered requests", Quantity::Share),
        reordering,
    ));
    let mut claims = judged(&grid, &SAID_OF_TAILS);
    claims.extend(fixed(&grid));
    claims.extend(log_normal(&grid));
    claims.extend(trimodal(&grid));
    Ok(Figure { reading: format!("{SETTING} {LENGTH}"), plots, claims })
}

pub(crate) fn means(context: &Context) -> Result<Figure, FigureError> {
    let grid = Grid::play(context, "tailclipper-fig-9.toml", MEANS)?;
    let plots = plots(&grid, "mean", &Axis::log("mean latency", Quantity::Seconds), mean);
    Ok(Figure { reading: format!("{SETTING} {LENGTH}"), plots, claims: judged(&grid, &SAID_OF_MEANS) })
}

fn plots(grid: &Grid, what: &str, y: &Axis, measure: Measure) -> Vec<Plot> {
    let plot = |law: &str| Plot {
        title: format!("{law}: {what}"),
        x: Axis::linear("requests/s", Quantity::PerSecond),
        y: y.clone(),
        lines: grid.lines(&[("law", law)], "rate", "scheduler", measure),
    };
    grid.values("law").into_iter().map(plot).collect()
}

const EXP_400: &[(&str, &str)] = &[("law", "exponential"), ("rate", "400")];
const EXP_450: &[(&str, &str)] = &[("law", "exponential"), ("rate", "450")];
const EXP_500: &[(&str, &str)] = &[("law", "exponential"), ("rate", "500")];
const EXP_250: &[(&str, &str)] = &[("law", "exponential"), ("rate", "250")];
const EXP_350: &[(&str, &str)] = &[("law", "exponential"), ("rate", "350")];
const LOG_NORMAL_400: &[(&str, &str)] = &[("law", "log-normal"), ("rate", "400")];
const TRIMODAL_450: &[(&str, &str)] = &[("law", "trimodal"), ("rate", "450")];
/// Of the prototypes: in a chain age adds 1 to 5 % to what the cap does.
const LITTLE: Expected = Expected::AtLeast(-0.05);

const fn said(
    said: &'static str,
    expected: Expected,
    at: &'static [(&'static str, &'static str)],
    pair: [&'static str; 2],
    measure: Measure,
) -> Said {
    Said { said, expected, at, pair, measure, open: None }
}

const SAID_OF_TAILS: [Said; 11] = [
    Said {
        open: Some(COSTS),
        ..said(
            "exponential, 400/s: P99 −81 % against Shinjuku",
            Expected::About { value: -0.81, within: 0.05 },
            EXP_400,
            ROUND_ROBIN,
            p99,
        )
    },
    said("exponential, 400/s: P99 lower than Shinjuku's", Expected::Negative, EXP_400, ROUND_ROBIN, p99),
    said("(ours) exponential, 400/s: age adds at most 5 % to the cap", LITTLE, EXP_400, LIMITED, p99),
    said("exponential, 450/s: P99 lowest, against Shinjuku", Expected::Negative, EXP_450, ROUND_ROBIN, p99),
    said("exponential, 450/s: P99 lowest, against CFS", Expected::Negative, EXP_450, FAIR, p99),
    said("exponential, 500/s: P99 lowest, against Shinjuku", Expected::Negative, EXP_500, ROUND_ROBIN, p99),
    said("exponential, 500/s: P99 lowest, against CFS", Expected::Negative, EXP_500, FAIR, p99),
    said(
        "log-normal, 400/s: P99 lower than Shinjuku's",
        Expected::Negative,
        LOG_NORMAL_400,
        ROUND_ROBIN,
        p99,
    ),
    said("(ours) log-normal, 400/s: age adds at most 5 % to the cap", LITTLE, LOG_NORMAL_400, LIMITED, p99),
    said("trimodal, 450/s: P99 lower than Shinjuku's", Expected::Negative, TRIMODAL_450, ROUND_ROBIN, p99),
    said("(ours) trimodal, 450/s: age adds at most 5 % to the cap", LITTLE, TRIMODAL_450, LIMITED, p99),
];

const SAID_OF_MEANS: [Said; 9] = [
    Said {
        open: Some(COSTS),
        ..said(
            "exponential, 350/s: mean −54 % against Shinjuku",
            Expected::About { value: -0.54, within: 0.05 },
            EXP_350,
            ROUND_ROBIN,
            mean,
        )
    },
    said("exponential, 350/s: mean lower than Shinjuku's", Expected::Negative, EXP_350, ROUND_ROBIN, mean),
    said("(ours) exponential, 350/s: age adds at most 5 % to the cap", LITTLE, EXP_350, LIMITED, mean),
    Said {
        open: Some(COSTS),
        ..said(
            "exponential, 250/s: mean −11 % against Shinjuku",
            Expected::About { value: -0.11, within: 0.05 },
            EXP_250,
            ROUND_ROBIN,
            mean,
        )
    },
    said("exponential, 250/s: mean lower than Shinjuku's", Expected::Negative, EXP_250, ROUND_ROBIN, mean),
    said("exponential, 450/s: mean lowest, against Shinjuku", Expected::Negative, EXP_450, ROUND_ROBIN, mean),
    said("exponential, 450/s: mean lowest, against CFS", Expected::Negative, EXP_450, FAIR, mean),
    said(
        "exponential, 450/s: CFS has a higher mean than Shinjuku",
        Expected::Positive,
        EXP_450,
        ["fair", "round-robin"],
        mean,
    ),
    said(
        "log-normal, 350/s: mean not above Shinjuku's",
        Expected::AtMost(0.0),
        &[("law", "log-normal"), ("rate", "350")],
        ROUND_ROBIN,
        mean,
    ),
];

/// Who exceeds a second where, and how much ORF reorders at most.
fn fixed(grid: &Grid) -> Vec<Claim> {
    let at = |scheduler, rate| [("law", "fixed"), ("scheduler", scheduler), ("rate", rate)];
    let p99_at = |said: &str, expected, scheduler, rate| {
        let found = grid.estimate(&at(scheduler, rate), p99)?;
        Some(Claim::new(said, expected, found, time).underspecified(COSTS))
    };
    let most = grid.values("rate").into_iter().filter_map(|rate| grid.estimate(&at("orf", rate), reordering));
    let most = most.max_by(|a, b| a.value.total_cmp(&b.value));
    let reordered = most.map(|found| {
        Claim::new("fixed: ORF reorders at most 25 % at any rate", Expected::AtMost(0.25), found, share)
            .remark("other work reorders in the last tier, too, whatever the scheduler there does")
    });
    let second = Expected::AtLeast(1.0);
    let all = [
        p99_at("fixed: Shinjuku's P99 exceeds 1 s beyond 450/s, at 500/s", second, "round-robin", "500"),
        p99_at("fixed: CFS's P99 exceeds 1 s beyond 450/s, at 500/s", second, "fair", "500"),
        p99_at("fixed: ORF's P99 exceeds 1 s only beyond 600/s", Expected::AtMost(1.0), "orf", "600"),
        reordered,
    ];
    all.into_iter().flatten().collect()
}

/// How much load the P99 target of a second allows.
fn log_normal(grid: &Grid) -> Vec<Claim> {
    let sustains = |scheduler| {
        let points = grid.points(&[("law", "log-normal"), ("scheduler", scheduler)], "rate", p99);
        exceeds(&points, 1.0)
    };
    let (Some(orf), Some(round_robin)) = (sustains("orf"), sustains("round-robin")) else {
        return Vec::new();
    };
    let rate = |rate: f64| format!("{rate:.0}/s");
    vec![
        Claim::exact(
            "log-normal: ORF's P99 exceeds 1 s only beyond 400/s",
            Expected::AtLeast(400.0),
            orf,
            rate,
        ),
        Claim::exact(
            "log-normal: 1.6 × the load of Shinjuku within 1 s",
            about(1.6),
            orf / round_robin,
            number,
        )
        .underspecified(COSTS),
        Claim::exact(
            "log-normal: more load than Shinjuku",
            Expected::AtLeast(1.0),
            orf / round_robin,
            number,
        ),
    ]
}

/// The largest reduction at a rate at which ORF's P99 is within a second.
fn trimodal(grid: &Grid) -> Option<Claim> {
    fn at(rate: &str) -> [(&str, &str); 2] {
        [("law", "trimodal"), ("rate", rate)]
    }
    let within = |rate: &&str| {
        let tail = grid.estimate(&[&at(rate)[..], &[("scheduler", "orf")]].concat(), p99);
        tail.is_some_and(|tail| tail.value <= 1.0)
    };
    let rates = grid.values("rate").into_iter().filter(within);
    let changes = rates.filter_map(|rate| grid.change(&at(rate), "scheduler", ROUND_ROBIN, p99));
    let best = changes.min_by(|a, b| a.value.total_cmp(&b.value))?;
    let said = "trimodal: P99 −76 % against Shinjuku where ORF's is within 1 s";
    Some(Claim::new(said, about(-0.76), best, crate::claim::change).underspecified(COSTS))
}
