//! The script of charts in a real browser: its ticks against those of `axis`, and what a reader can do.

use super::Page;
use crate::axis::AxisEnds;
use crate::data;
use crate::{Axis, Bars, Block, Chart, Dots, Marker, Reference, Series, Unit};
use std::process::Command;

/// A name that would end an element or an attribute, run as a formula, or break a row.
const HOSTILE: &str = "=1+1,\"</script><img src=x onerror=\"window.owned=1\">\nend";

/// Runs `script` in a page, whose policy may know scripts by a nonce, and returns the complaints with which it called `complain`; `None` without a browser.
fn complaints(html: &str, script: &str) -> Option<Vec<String>> {
    let browser = testkit::program("chromium")?;
    let folder = tempfile::tempdir().expect("a folder");
    let report = format!(
        "<script nonce=\"n0nce\">var found = []; function complain(text){{ found.push(String(text)); }}
        addEventListener('error', function(event){{ complain(event.message); }});</script>
        <script nonce=\"n0nce\">{script}</script>
        <script nonce=\"n0nce\">document.body.replaceChildren(); document.body.textContent = 'CHECKED' + found.join('\\n') + 'CHECKED';</script>
        </body>"
    );
    let file = folder.path().join("page.html");
    std::fs::write(&file, html.replace("</body>", &report)).expect("a folder");
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom"])
        .args(["--window-size=1400,1000", "--force-color-profile=srgb"])
        .arg(format!("--user-data-dir={}", folder.path().join("browser").display()))
        .arg(format!("file://{}", file.display()))
        .output()
        .expect("the browser starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let Some(found) = text.split("CHECKED").nth(1).filter(|_| text.matches("CHECKED").count() == 2) else {
        testkit::skip(&format!(
            "the browser does not run the page: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ));
        return None;
    };
    Some(found.lines().map(str::to_owned).collect())
}

/// Ranges of an axis: decades from tiny to huge, and small parts of them.
fn ranges(log: bool) -> Vec<(f64, f64)> {
    let mut ranges = Vec::new();
    let mut state = 11_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    for _ in 0..60 {
        let lo = 10f64.powf(random() * 18.0 - 9.0);
        ranges.push((lo, lo * (1.0 + 10f64.powf(random() * 8.0 - 3.0))));
        if !log {
            ranges.push((-lo, lo * random()));
            ranges.push((0.0, lo));
        }
    }
    ranges
}

#[test]
fn ticks_are_the_same_with_and_without_scripts() {
    use Unit::{Bytes, BytesPerSec, Count, PerSec, Percent, Plain, Seconds};
    let mut cases = Vec::new();
    for unit in [Plain, Count, Seconds, Bytes, BytesPerSec, PerSec, Percent] {
        for log in [false, true] {
            for (index, (lo, hi)) in ranges(log).into_iter().enumerate() {
                let label = if index % 4 == 0 { "" } else { "quantity" };
                let count = [4, 5, 8, 12][index % 4];
                let axis = if log { Axis::log(label, unit) } else { Axis::linear(label, unit) };
                let axis = axis.min(lo).max(hi);
                let Some(expected) = axis.resolve([lo, hi].into_iter(), AxisEnds::Tight, count) else {
                    continue;
                };
                let labels = data::array(expected.ticks.iter().map(|tick| data::quoted(&tick.label)));
                let values = data::array(expected.ticks.iter().map(|tick| data::number(tick.value)));
                let minor = data::array(expected.minor.iter().map(|value| data::number(*value)));
                cases.push(format!(
                    "[{{label:{},unit:'{}',log:{log}}},{},{},{count},{labels},{values},{minor},{}]",
                    data::quoted(label),
                    unit.name(),
                    data::number(expected.lo),
                    data::number(expected.hi),
                    data::quoted(&expected.title)
                ));
            }
        }
    }
    assert!(cases.len() > 1500, "{}", cases.len());
    let script = format!(
        "function near(a, b){{ return a.length === b.length && a.every((v, i) => Math.abs(v - b[i]) <= 1e-9 * Math.abs(v) + 1e-300); }}
        {}.forEach(function(c){{
          var got = charted.ticks(c[0], c[1], c[2], c[3]);
          var same = JSON.stringify(got.ticks.map(t => t[1])) === JSON.stringify(c[4]) && got.title === c[7];
          if (!same || !near(got.ticks.map(t => t[0]), c[5]) || !near(got.minor, c[6])) complain(JSON.stringify([c, got]));
        }});",
        data::array(cases)
    );
    let chart = Chart::new("c", Axis::linear("x", Plain), Axis::linear("y", Plain));
    let html = Page::new("t").section("s", [chart.into()]).to_html();
    let Some(found) = complaints(&html, &script) else { return };
    assert!(found.is_empty(), "{} differ, first {:#?}", found.len(), &found[..found.len().min(3)]);
}

#[test]
fn numbers_are_written_the_same_with_and_without_scripts() {
    use Unit::{Bytes, PerSec, Percent, Plain, Seconds};
    let values =
        ranges(false).into_iter().flat_map(|(a, b)| [a, b]).chain([0.15, 7200.0, 36_000.0, 9999.0, 1e30]);
    let values: Vec<f64> = values.collect();
    let mut cases = Vec::new();
    for unit in [Plain, Seconds, Bytes, PerSec, Percent] {
        let written = values.iter().map(|value| {
            format!("['{}',{},{}]", unit.name(), data::number(*value), data::quoted(&unit.format(*value)))
        });
        cases.extend(written);
    }
    let script = format!(
        "{}.forEach(function(c){{ if (charted.format(c[0], c[1]) !== c[2]) complain(c + ' ' + charted.format(c[0], c[1])); }});",
        data::array(cases)
    );
    let chart = Chart::new("c", Axis::linear("x", Plain), Axis::linear("y", Plain));
    let html = Page::new("t").section("s", [chart.into()]).to_html();
    let Some(found) = complaints(&html, &script) else { return };
    assert!(found.is_empty(), "{found:#?}");
}

/// Charts of all kinds. The first three share their x axis, the fourth has another.
fn page() -> Page {
    let time = || Axis::linear("time", Unit::Seconds);
    let first = Chart::new("First", time(), Axis::linear("latency", Unit::Seconds))
        .series(Series::line("storage", (0..=10).map(|i| (f64::from(i), 0.01 * f64::from(i)))))
        .series(Series::steps(HOSTILE, [(0.0, 0.02), (4.0, 0.08), (10.0, 0.04)]))
        .series(Series::points("points", [(5.0, 0.05), (6.0, 0.06)]))
        .reference(Reference::x(5.0, "middle"))
        .marker(Marker::new(5.0, 0.05, "here"));
    let second = Chart::new("Second", time(), Axis::log("rate", Unit::PerSec)).series(Series::area(
        "",
        (0..5000).map(|i| (f64::from(i) / 500.0, 1.0 + f64::from(i * 7919 % 1000))),
    ));
    let band = Chart::new("Band", time(), Axis::linear("latency", Unit::Seconds))
        .series(Series::band("b", [(0.0, 0.1, 0.2), (10.0, 0.2, 0.4)]));
    let other =
        Chart::new("Other", Axis::log("latency", Unit::Seconds), Axis::log("share above", Unit::Percent))
            .series(Series::steps("ccdf", [(0.001, 1.0), (0.01, 0.1), (0.1, 0.01)]));
    let bars = Bars::grouped("Load", ("load", Unit::Percent), ["a", "b"]).row(HOSTILE, [0.5, f64::NAN]);
    let dots = Dots::new("Dots", Axis::linear("", Unit::Seconds), ["p", "q"], "SLO").row(
        "w",
        [Some(0.1), None],
        0.2,
    );
    Page::new("Charts").section(
        "s",
        [first.into(), second.into(), band.into(), other.into(), Block::grid(2, [bars.into(), dots.into()])],
    )
}

#[test]
fn a_reader_zooms_points_isolates_and_saves() {
    let escaped = "\"'=1+1,\"\"</script><img src=x onerror=\"\"window.owned=1\"\">\nend\"";
    let csv = data::quoted(&format!(
        "series,time (s),latency (s)\n{}{escaped},0,0.02\n{escaped},4,0.08\n{escaped},10,0.04\npoints,5,0.05\npoints,6,0.06\n",
        (0..=10).map(|i| format!("storage,{},{}\n", i, 0.01 * f64::from(i))).collect::<String>()
    ));
    let bars = data::quoted(&format!("name,a: load (fraction),b: load (fraction)\n{escaped},0.5,\n"));
    // A script must not end within the text.
    let safe = |text: String| text.replace('<', "\\u003c");
    let script =
        format!("var CSV = {}, BARS = {};\n{}", safe(csv), safe(bars), include_str!("charts_check.js"));
    let Some(found) = complaints(&page().to_html(), &script) else { return };
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn the_script_runs_in_pages_of_a_service_under_their_policy() {
    let policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-n0nce'; connect-src 'self'; base-uri 'none'";
    let meta = format!("<head><meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\"/>");
    let html = page().to_served_html(&super::Site::new("n0nce")).replacen("<head>", &meta, 1);
    let script =
        "if (document.querySelectorAll('figure .tools button').length !== 10) complain('no buttons');
        if (document.querySelectorAll('svg.plot').length === 0) complain('no plots');";
    let Some(found) = complaints(&html, script) else { return };
    assert!(found.is_empty(), "{found:#?}");
}
