//! Metrics as scrapers and dashboards read them.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The text of an endpoint's metrics.
pub(crate) fn scrape(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).expect("the endpoint listens");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("the endpoint reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the endpoint answers");
    answer.split_once("\r\n\r\n").expect("a head").1.to_owned()
}

/// All samples by name and labels.
pub(crate) fn samples(page: &str) -> BTreeMap<String, f64> {
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    let sample = |line: &str| {
        let (series, value) = line.rsplit_once(' ').expect("a value");
        (series.to_owned(), value.parse().expect("a number"))
    };
    lines.map(sample).collect()
}

/// The families of a page as Prometheus' own parser for Python reads it, a line each; `None` where that cannot be had.
pub(crate) fn parsed_by_python(page: &str) -> Option<String> {
    const READ: &str = "import sys\n\
        from prometheus_client.openmetrics.parser import text_string_to_metric_families as read\n\
        for family in read(sys.stdin.read()): print(family.name, family.type, family.unit, len(family.samples))\n";
    let python = testkit::program("python3")?;
    let modules = Path::new(env!("CARGO_TARGET_TMPDIR")).join("prometheus_client");
    let is_there = modules.exists()
        || Command::new(&python)
            .args(["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check", "--target"])
            .args([modules.as_os_str(), "prometheus_client==0.26.0".as_ref()])
            .output()
            .is_ok_and(|output| output.status.success());
    if !is_there {
        testkit::skip("prometheus_client cannot be installed by pip");
        return None;
    }
    let mut reader = Command::new(python)
        .args(["-c", READ])
        .env("PYTHONPATH", modules)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("Python runs");
    reader.stdin.take().expect("it is piped").write_all(page.as_bytes()).expect("Python reads");
    let output = reader.wait_with_output().expect("Python ends");
    assert!(output.status.success(), "{page}\n{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("names are text"))
}

/// A file of the folder `examples`.
pub(crate) fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

/// The names of all samples that a page can have.
fn names(page: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in page.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').expect("a name and a type");
        let endings: &[&str] = match kind {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_sum", "_count"],
            "info" => &["_info"],
            _ => &[""],
        };
        names.extend(endings.iter().map(|ending| format!("{name}{ending}")));
    }
    names
}

/// Checks that a dashboard of the examples asks for at least so many of the names that a page can have, and for no others.
#[track_caller]
pub(crate) fn check_dashboard(file: &str, page: &str, least: usize) {
    let text = std::fs::read_to_string(example(file)).expect("the example is there");
    let dashboard: Value = serde_json::from_str(&text).expect("it is JSON");
    let known = names(page);
    let mut asked = BTreeSet::new();
    let panels = dashboard["panels"].as_array().expect("panels are a list");
    for expression in panels.iter().flat_map(|panel| panel["targets"].as_array().expect("targets are a list"))
    {
        let expression = expression["expr"].as_str().expect("an expression");
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let words = expression.split(|c| !is_part(c)).filter(|word| word.starts_with("tailwright_"));
        asked.extend(words.map(str::to_owned));
        assert_eq!(expression.matches('(').count(), expression.matches(')').count(), "{expression}");
    }
    assert!(asked.len() >= least, "{asked:?}");
    let unknown: Vec<&String> = asked.difference(&known).collect();
    assert!(unknown.is_empty(), "{unknown:?} of {known:?}");
    let titles: BTreeSet<&str> = panels.iter().filter_map(|panel| panel["title"].as_str()).collect();
    assert_eq!(titles.len(), panels.len(), "a title each");
}
