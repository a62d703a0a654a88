//! Pages in a browser at three widths: nothing is lost without a cue, every chart says how to read it, values show where
//! the pointer is, and the small print says where the page comes from.

mod support;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::Folder;
use support::cluster::Cluster;

/// Widths of screens in pixels: a phone, half a screen, a screen.
const WIDTHS: [u32; 3] = [400, 800, 1280];

/// Charts are drawn at most this much smaller than they were laid out: text of 12 pixels stays readable.
const SCALE_MIN: f64 = 0.62;

/// What is found in a page, run by the browser in the page that holds it in frames.
const MEASURE: &str = r#"
function shown(element) { return element.getClientRects().length > 0; }
function measure(frame) {
  var view = frame.contentWindow, page = frame.contentDocument, root = page.documentElement;
  var found = { width: view.innerWidth, content: root.scrollWidth, cut: [], small: [], silent: [], outside: [], squeezed: [] };
  page.querySelectorAll("details").forEach(function (fold) { fold.open = true; });
  view.dispatchEvent(new view.Event("resize"));
  found.content = root.scrollWidth;
  page.querySelectorAll(".table, pre, figure").forEach(function (box) {
    var note = box.previousElementSibling;
    var has_cue = note !== null && note.className === "cut-note on" && shown(note);
    if (shown(box) && box.scrollWidth > box.clientWidth + 1 && !has_cue) {
      found.cut.push(box.textContent.slice(0, 60));
    }
  });
  var charts = Array.from(page.querySelectorAll("svg.chart")).filter(shown);
  charts.forEach(function (chart) {
    var box = chart.getBoundingClientRect(), name = chart.getAttribute("aria-label").slice(0, 60);
    if (box.right > view.innerWidth + 1 || box.left < -1) { found.outside.push(name); }
    if (box.width / chart.viewBox.baseVal.width < SCALE_MIN) { found.small.push(name); }
  });
  page.querySelectorAll("figure").forEach(function (figure) {
    var note = figure.querySelector(":scope > .note");
    if (note === null || note.textContent.length < 20) { found.silent.push(figure.textContent.slice(0, 60)); }
  });
  page.querySelectorAll("th, td").forEach(function (cell) {
    if (shown(cell) && cell.textContent.length > 4 && cell.clientWidth < 28) { found.squeezed.push(cell.textContent); }
  });
  found.charts = charts.length;
  found.figures = page.querySelectorAll("figure").length;
  found.tips = charts.filter(function (chart) {
    var mark = chart.querySelector("[data-tip]");
    if (mark === null) { return false; }
    var box = mark.getBoundingClientRect();
    var at = { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2, bubbles: true };
    chart.dispatchEvent(new view.PointerEvent("pointermove", at));
    var tip = page.querySelector(".tip"), text = tip.hidden ? "" : tip.textContent;
    chart.dispatchEvent(new view.PointerEvent("pointerleave", { bubbles: true }));
    return text !== "" && tip.hidden;
  }).length;
  found.footer = page.querySelector("footer").textContent;
  return found;
}
addEventListener("load", function () {
  var all = Array.from(document.querySelectorAll("iframe")).map(measure);
  var result = document.createElement("p");
  result.textContent = "MEASURED" + JSON.stringify(all) + "MEASURED";
  document.body.replaceChildren(result);
});
"#;

/// A page at each width, as the browser measures it; `None` where there is no browser.
fn measured(folder: &Folder, page: &str) -> Option<Vec<Value>> {
    let browser = testkit::program("chromium")?;
    let escaped = |text: &str| text.replace('&', "&amp;").replace('"', "&quot;");
    let source = escaped(&folder.read(page));
    let frame = |width: u32| {
        format!("<iframe style=\"width:{width}px;height:900px;border:0\" srcdoc=\"{source}\"></iframe>")
    };
    let frames: String = WIDTHS.into_iter().map(frame).collect();
    let script = MEASURE.replace("SCALE_MIN", &SCALE_MIN.to_string());
    folder.write(
        "frames.html",
        &format!("<!DOCTYPE html><meta charset=\"utf-8\"><script>{script}</script>{frames}"),
    );
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom"])
        .args(["--window-size=1400,1000", "--virtual-time-budget=20000"])
        .arg(format!("--user-data-dir={}", folder.join("browser").display()))
        .arg(format!("file://{}", folder.join("frames.html").display()))
        .output()
        .expect("the browser starts");
    let text = String::from_utf8_lossy(&output.stdout)
        .replace("&gt;", ">")
        .replace("&lt;", "<")
        .replace("&amp;", "&");
    let Some(found) = text.rsplit("MEASURED").nth(1).filter(|found| found.starts_with('[')) else {
        testkit::skip(&format!(
            "the browser does not measure: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ));
        return None;
    };
    Some(serde_json::from_str(found).expect("the script writes JSON"))
}

/// Judges a page at all widths.
fn judge(folder: &Folder, page: &str, command: &str) {
    let Some(views) = measured(folder, page) else { return };
    assert_eq!(views.len(), WIDTHS.len());
    for (view, width) in views.iter().zip(WIDTHS) {
        assert_eq!(view["width"].as_u64(), Some(u64::from(width)), "{page}: {view}");
        let number = |name: &str| view[name].as_u64().expect("a number");
        assert!(number("content") <= u64::from(width), "{page} scrolls sideways at {width}: {view}");
        for problem in ["cut", "small", "silent", "outside", "squeezed"] {
            assert_eq!(
                view[problem].as_array().map(Vec::len),
                Some(0),
                "{page}, {problem} at {width}: {view}"
            );
        }
        assert!(
            number("charts") >= number("figures"),
            "{page}: a figure without a drawing at {width}: {view}"
        );
        assert_eq!(view["tips"], view["charts"], "{page}: a chart shows no value at {width}");
        let footer = view["footer"].as_str().expect("text");
        assert!(footer.contains("GMT by tailwright") && footer.contains(command), "{page}: {footer}");
    }
}

const VARIED: &str = r#"
[run]
requests = 20000
replications = 4
load = 0.8

[[station]]
name = "queue"
workers = 1
discipline = "fifo"

[[entry]]
arrivals = "poisson(800/s)"
service = { queue = "exp(1ms)" }

[[vary]]
name = "load"
set = "run.load"
values = [0.2, 0.5, 0.8]
"#;

fn scenario(name: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scenarios").join(name);
    path.display().to_string()
}

/// Runs a command that writes `page.html` and judges the page.
fn made(folder: &Folder, args: &[&str]) {
    let outcome = folder.run(&[args, &["--report", "page.html"]].concat());
    assert!(matches!(outcome.code, 0 | 1), "an answer: {}", outcome.stderr);
    judge(folder, "page.html", args[0]);
}

#[test]
fn plans_and_predictions() {
    let cluster = Cluster::new(14, 2);
    made(&cluster.folder, &["plan", "cluster.toml", "--compare"]);
    made(&cluster.folder, &["plan", "cluster.toml", "--model", "replayed"]);
    let small = Cluster::new(3, 1);
    made(&small.folder, &["bound", "cluster.toml"]);
}

#[test]
fn simulations() {
    let folder = Folder::new();
    made(&folder, &["simulate", &scenario("fan-in.toml")]);
    made(&folder, &["simulate", &scenario("mm1.toml")]);
    folder.write("varied.toml", VARIED);
    made(&folder, &["simulate", "varied.toml"]);
    made(&folder, &["ideal", "--arrivals", "poisson(500/s)", "--service", "exp(1ms)", "--requests", "20000"]);
    made(&folder, &["reproduce", "variability-numbers", "tales-fig-2", "--quick"]);
}

#[test]
fn traces_and_verdicts() {
    let cluster = Cluster::new(3, 1);
    let folder = &cluster.folder;
    folder.run(&["trace", "info", "w0.csv", "--report", "page.html"]).expect_code(0);
    judge(folder, "page.html", "trace info");
    folder.run(&["plan", "cluster.toml", "-o", "policy.json"]).expect_code(0);
    folder.run(&["simulate", "policy.json", "--cluster", "cluster.toml", "-o", "seen.parquet"]);
    folder.run(&["verify", "policy.json", "seen.parquet", "--report", "page.html"]);
    judge(folder, "page.html", "verify");
}
