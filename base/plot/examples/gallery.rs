//! Every block on one page: `cargo run -p plot --example gallery > gallery.html`.

use plot::{
    Axis, Bars, Block, Bullets, Cell, Chart, Column, Distribution, KeyFigure, Marker, Page, Reference,
    RowOrder, Series, Status, Table, Unit, stack,
};

/// A small seeded generator (splitmix64), uniform in (0, 1).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64 + 1e-17
    }

    fn exponential(&mut self) -> f64 {
        -self.next().ln()
    }
}

fn main() {
    let mut random = Random(7);
    let page = Page::new("Plan: 41 workloads on 6 servers")
        .lead("Every workload is admitted. The tightest bound is 98.2% of its SLO; no stage is loaded above 87%.")
        .section("", [facts(), Block::paragraph("Bounds hold for the traces given, rounded outward. Loads are average rates over capacity.")])
        .section("Servers", [servers(&mut random).into(), stacked().into()])
        .section("Workloads", [bullets(&mut random, 14, false).into(), bullets(&mut random, 9, true).into(), table(&mut random).into()])
        .section("Burst curves", [Block::grid(3, (0..6).map(|i| burst_curve(i).into()))])
        .section("Trace", trace(&mut random))
        .section("Latency", latency(&mut random))
        .section("Edge cases", edges(&mut random))
        .section("Folds", [Block::fold("How w03 is bounded", [Block::Preformatted("storage   b/R + …  = 41.2ms\nnetwork   b/R      =  3.1ms".into())]), bullets(&mut random, 200, false).into()])
        .footer("tailwright 0.1.0 · slos.csv · seed 7");
    print!("{}", page.to_html());
}

fn facts() -> Block {
    vec![
        KeyFigure::new("6", "servers used"),
        KeyFigure::new("5.36", "lower bound"),
        KeyFigure::new("41 of 41", "workloads admitted").status(Status::Good),
        KeyFigure::new("98.2%", "tightest bound / SLO").status(Status::Warn),
        KeyFigure::new("2", "limits unused").status(Status::Bad),
    ]
    .into()
}

fn servers(random: &mut Random) -> Bars {
    let bars = Bars::grouped(
        "Load by stage",
        ("average load", Unit::Percent),
        ["network in", "storage", "network out"],
    )
    .limit(1.0, "capacity")
    .note("Average rate of all workloads of a server over the stage's capacity.");
    (1..=6).fold(bars, |bars, i| {
        bars.row(
            format!("server {i}"),
            [0.2 + 0.3 * random.next(), 0.4 + 0.65 * random.next(), 0.1 + 0.5 * random.next()],
        )
    })
}

fn stacked() -> Bars {
    Bars::stacked(
        "Storage work by operation",
        ("work per second", Unit::Seconds),
        ["read", "write", "sync", "metadata"],
    )
    .row("server 1", [0.31, 0.22, 0.04, 0.02])
    .row("server 2", [0.11, 0.42, 0.14, 0.01])
    .row("a server with a very long name that somebody generated from a template", [0.5, 0.1, 0.02, 0.2])
}

fn bullets(random: &mut Random, rows: usize, log: bool) -> Bullets {
    let axis = if log { Axis::log("latency", Unit::Seconds) } else { Axis::linear("latency", Unit::Seconds) };
    let bullets = Bullets::new("Bound against SLO, tightest first", axis, ("bound", "SLO"))
        .order(RowOrder::TightestFirst);
    let bullets = (0..rows).fold(bullets, |bullets, i| {
        let slo = [0.1, 0.15, 0.25, 0.5][i % 4];
        bullets.row(
            format!("w{i:02}"),
            slo * if log { random.next().powi(3) * 1.2 } else { 0.3 + 0.73 * random.next() },
            slo,
        )
    });
    if log { bullets.row("unbounded-one", f64::INFINITY, 0.2) } else { bullets }
}

fn table(random: &mut Random) -> Table {
    let mut table = Table::new([
        Column::text("workload"),
        Column::number("server"),
        Column::number("SLO"),
        Column::number("bound"),
        Column::number("rate"),
        Column::text("verdict"),
    ])
    .caption("Placement");
    for i in 0..6 {
        let bound = 0.2 * random.next() + 0.004;
        let (status, verdict) = match bound {
            b if b < 0.13 => (Status::Good, "met"),
            b if b < 0.15 => (Status::Warn, "close"),
            _ => (Status::Bad, "not met"),
        };
        table.push([
            Cell::text(format!("<w{i:02}> & co")),
            Cell::number(f64::from(i % 3 + 1), Unit::Plain),
            Cell::number(0.150, Unit::Seconds),
            Cell::number(bound, Unit::Seconds).status(status),
            Cell::number(1e6 * random.next(), Unit::BytesPerSec),
            Cell::text(verdict).status(status),
        ]);
    }
    table
}

fn burst_curve(i: usize) -> Chart {
    let curve = (0..=60).map(|k| {
        let r = 0.02 + f64::from(k) / 60.0 * 0.6;
        (r, 0.004 * (i + 1) as f64 / r.powf(1.3))
    });
    let r = 0.1 + 0.08 * i as f64;
    Chart::new(format!("w{i:02}"), Axis::linear("rate r", Unit::Percent), Axis::log("burst b", Unit::Seconds))
        .series(Series::line("burst curve", curve))
        .marker(Marker::new(r, 0.004 * (i + 1) as f64 / r.powf(1.3), format!("r {:.0}%", r * 100.0)))
}

fn trace(random: &mut Random) -> Vec<Block> {
    let rate: Vec<(f64, f64)> = (0..100_000)
        .map(|i| {
            (
                f64::from(i) * 0.072,
                300.0 + 200.0 * (f64::from(i) / 9000.0).sin() + 150.0 * random.exponential(),
            )
        })
        .collect();
    let writes = rate.iter().map(|&(t, r)| (t, r * 0.3)).collect::<Vec<_>>();
    let sizes =
        Distribution::from_samples((0..5000).map(|_| 4096.0 * (1.3 * random.exponential()).exp().min(256.0)));
    let idc = |h: f64| {
        (0..24).map(move |k| (0.001 * 2f64.powf(f64::from(k) * 0.75), 1.0 + 2f64.powf(f64::from(k) * h)))
    };
    vec![
        Chart::new(
            "Request rate, 1 s windows",
            Axis::linear("time", Unit::Seconds),
            Axis::linear("requests", Unit::PerSec),
        )
        .series(Series::line("reads", rate))
        .series(Series::line("writes", writes))
        .into(),
        Block::grid(
            2,
            [
                Chart::new(
                    "Sizes",
                    Axis::log("size", Unit::Bytes),
                    Axis::linear("share of requests", Unit::Percent),
                )
                .series(Series::steps("", sizes.cdf()))
                .into(),
                Chart::new("Sizes", Axis::log("size", Unit::Bytes), Axis::linear("requests", Unit::Plain))
                    .series(Series::histogram("", &sizes.log_histogram(30)))
                    .into(),
                Chart::new(
                    "Index of dispersion",
                    Axis::log("window", Unit::Seconds),
                    Axis::log("variance / mean", Unit::Plain),
                )
                .series(Series::line("this trace", idc(0.55)))
                .series(Series::line("shuffled", idc(0.2)))
                .series(Series::line(
                    "Poisson",
                    (0..24).map(|k| (0.001 * 2f64.powf(f64::from(k) * 0.75), 1.0)),
                ))
                .into(),
                Chart::new(
                    "Size against gap",
                    Axis::log("gap", Unit::Seconds),
                    Axis::log("size", Unit::Bytes),
                )
                .series(Series::points(
                    "reads",
                    (0..4000).map(|_| (1e-4 * random.exponential(), 4096.0 * random.exponential().exp())),
                ))
                .series(Series::points(
                    "writes",
                    (0..60).map(|_| (3e-3 * random.exponential(), 65536.0 * random.exponential().exp())),
                ))
                .into(),
            ],
        ),
    ]
}

fn latency(random: &mut Random) -> Vec<Block> {
    let sample = |random: &mut Random, scale: f64| {
        Distribution::from_samples(
            (0..50_000).map(|_| scale * (0.9 * random.exponential()).exp() * random.next().powf(-0.1)),
        )
    };
    let before = sample(random, 0.002);
    let after = sample(random, 0.0011);
    let ideal = sample(random, 0.0007);
    let p99 = |scale: f64, random: &mut Random| {
        (0..40).map(|t| (f64::from(t) * 30.0, scale * (1.0 + random.exponential()))).collect::<Vec<_>>()
    };
    let xs: Vec<f64> = (0..300).map(f64::from).collect();
    let layer = |random: &mut Random, scale: f64| {
        xs.iter().map(|x| scale * (1.5 + (x / 30.0).sin() + 0.4 * random.exponential())).collect::<Vec<_>>()
    };
    let layers = [
        ("network in".to_owned(), layer(random, 1.0)),
        ("storage".to_owned(), layer(random, 4.0)),
        ("network out".to_owned(), layer(random, 2.0)),
    ];
    vec![
        Chart::new(
            "Share of requests slower than x",
            Axis::log("latency", Unit::Seconds),
            Axis::log("share above", Unit::Percent),
        )
        .series(Series::steps("before", before.ccdf()))
        .series(Series::steps("after", after.ccdf()))
        .series(Series::steps("ideal", ideal.ccdf()))
        .reference(Reference::x(0.150, "SLO 150ms"))
        .reference(Reference::y(0.001, "99.9%").quiet())
        .marker(Marker::new(0.150, 0.001, "99.9% < 150ms"))
        .into(),
        Chart::new("p99 over time", Axis::linear("time", Unit::Seconds), Axis::linear("p99", Unit::Seconds))
            .series(Series::line("storage", p99(0.03, random)))
            .series(Series::line("network in", p99(0.006, random)))
            .series(Series::line("network out", p99(0.012, random)))
            .series(Series::line("end to end", p99(0.045, random)))
            .reference(Reference::y(0.150, "SLO 150ms"))
            .reference(Reference::y(0.147, "bound 147ms").quiet())
            .into(),
        Chart::new(
            "Queue by stage",
            Axis::linear("time", Unit::Seconds),
            Axis::linear("requests waiting", Unit::Plain),
        )
        .all(stack(&xs, layers))
        .into(),
    ]
}

fn edges(random: &mut Random) -> Vec<Block> {
    let plain =
        |title: &str| Chart::new(title, Axis::linear("x", Unit::Plain), Axis::linear("y", Unit::Plain));
    let log = |title: &str| Chart::new(title, Axis::log("x", Unit::Plain), Axis::log("y", Unit::Plain));
    vec![
        Block::grid(
            4,
            [
                plain("Empty").into(),
                plain("One point").series(Series::line("", [(3.0, 5.0)])).into(),
                plain("All equal").series(Series::line("", [(1.0, 7.0), (2.0, 7.0), (3.0, 7.0)])).into(),
                log("Zeros, NaN, log")
                    .series(Series::line(
                        "",
                        [(0.0, 1.0), (1.0, 10.0), (2.0, 0.0), (3.0, f64::NAN), (4.0, 5.0), (5.0, 8.0)],
                    ))
                    .into(),
                plain("Negative").series(Series::area("", [(-5.0, -3.0), (0.0, 4.0), (5.0, -6.0)])).into(),
                log("Huge range").series(Series::line("", [(1e-30, 1e-12), (1e20, 1e24)])).into(),
                plain("Tiny").series(Series::line("", [(1e-9, 2e-7), (5e-9, 9e-7)])).into(),
                Chart::new(
                    "Pinned",
                    Axis::linear("x", Unit::Plain).max(4.0),
                    Axis::linear("y", Unit::Plain).max(10.0),
                )
                .series(Series::line("", (0..40).map(|i| (f64::from(i) / 5.0, 14.0 * random.next()))))
                .into(),
            ],
        ),
        Bars::grouped("Negative, zero, not finite", ("change", Unit::Percent), ["latency", "throughput"])
            .row("ünïcödé 日本語 🚀", [-0.3, 0.12])
            .row("zero", [0.0, 0.0])
            .row("unknown", [f64::NAN, f64::INFINITY])
            .into(),
        (0..9)
            .fold(plain("More series than colours").height(260), |chart, i| {
                chart.series(Series::line(
                    format!("series {i}"),
                    (0..12).map(move |x| (f64::from(x), f64::from(i) + f64::from(x).sqrt())),
                ))
            })
            .into(),
        Bullets::new("None", Axis::linear("", Unit::Seconds), ("bound", "SLO")).into(),
        Table::new([Column::text("nothing"), Column::number("here")]).into(),
    ]
}
