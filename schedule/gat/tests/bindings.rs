//! Tags between services in other languages: real services, in rotated order so that each language is the
//! edge once, and a stranger, which must never see a tag.

mod services;

use serde_json::Value;
use services::{GO_SETTINGS, Language, Service, ask, ask_for, baggage, bindings, go, java, stranger};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// Maximum deviation of the languages' clocks from ours: Node's has milliseconds.
const CLOCK_NS: u64 = 2_000_000;

fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    u64::try_from(since.as_nanos()).expect("it is before 2554")
}

fn start(answer: &Value) -> u64 {
    answer["start"].as_str().and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("{answer}"))
}

/// Spellings of paths on which all languages agree; an ambiguous one has the longest SLO, here none.
const CLASSES: [(&str, Option<u64>); 7] = [
    ("/soon", Some(50_000_000)),
    ("/later", Some(5_000_000_000)),
    ("/%73oon", Some(50_000_000)),
    ("/%6c%61ter?soon", Some(5_000_000_000)),
    ("/soon?x=1", Some(50_000_000)),
    ("/x/../soon", None),
    ("/soon;x=1", None),
];

/// Checks an edge and inner services, each of which calls the next one and a stranger.
fn check_chain(languages: &[Language]) {
    let (stranger, seen) = stranger();
    let mut services: Vec<Service> = Vec::new();
    for (at, language) in languages.iter().enumerate().rev() {
        let next = services.last().map(|service| format!("http://127.0.0.1:{}/", service.port));
        let urls: Vec<String> = next.into_iter().chain([format!("http://localhost:{stranger}/")]).collect();
        services.push(language.start(if at == 0 { "edge" } else { "inner" }, &urls));
    }
    let inner = services[0].port;
    let edge = services[services.len() - 1].port;

    let before = now_ns() - CLOCK_NS;
    let (answer, reply) =
        ask(edge, "Baggage: tailwright-start=1, user=7\r\nbaggage: %74ailwright-start=2\r\n");
    let stamped = start(&answer);
    assert!(
        (before..=now_ns() + CLOCK_NS).contains(&stamped),
        "{languages:?}: a client's start counts: {answer}"
    );
    assert_eq!(answer["baggage"], format!("tailwright-start={stamped},user=7"), "{languages:?}");
    assert_eq!(reply, ["reply=1"], "{languages:?}");
    let mut hop = &answer["called"][0];
    for _ in 1..languages.len() {
        assert_eq!(hop["baggage"], format!("tailwright-start={stamped},own=1"), "{languages:?}");
        assert_eq!(start(hop), stamped, "{languages:?}");
        hop = &hop["called"][0];
    }
    for _ in languages {
        assert_eq!(baggage(&seen.recv().expect("the stranger was called")), ["own=1"], "{languages:?}");
    }

    // The edge knows the SLO of a class; a client's deadline is ignored.
    for (path, slo_ns) in CLASSES {
        let (answer, _) = ask_for(path, edge, "baggage: tailwright-start=1,tailwright-deadline=2\r\n");
        let start = start(&answer);
        let deadline = slo_ns.map_or_else(String::new, |ns| format!(",tailwright-deadline={}", start + ns));
        let tag = format!("tailwright-start={start}{deadline}");
        assert_eq!(answer["baggage"], tag, "{languages:?} {path}");
        let mut hop = &answer["called"][0];
        for _ in 1..languages.len() {
            assert_eq!(hop["baggage"], format!("{tag},own=1"), "{languages:?} {path}");
            hop = &hop["called"][0];
        }
    }

    // Baggage with non-ASCII characters is also answered.
    assert!(start(&ask(edge, "baggage: user=\u{e9}\u{20ac}\r\n").0) > stamped, "{languages:?}");

    // An inner service accepts possible starts only.
    let possible = now_ns() - 1_000_000_000;
    assert_eq!(start(&ask(inner, &format!("baggage: tailwright-start={possible}\r\n")).0), possible);
    for absurd in ["18446744073709551616", "9223372036854775807", "-1", "1e3", ""] {
        let before = now_ns() - CLOCK_NS;
        let answer = ask(inner, &format!("baggage: tailwright-start={absurd}\r\n")).0;
        assert!((before..=now_ns() + CLOCK_NS).contains(&start(&answer)), "{languages:?} {absurd}: {answer}");
    }
}

#[test]
fn tags_pass_from_language_to_language() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut languages = Language::installed(folder.path());
    for _ in 0..languages.len() {
        check_chain(&languages);
        languages.rotate_left(1);
    }
}

#[test]
fn the_cases_of_all_languages() {
    let test = |program: Option<PathBuf>, folder: &str, args: &[&str]| {
        let Some(program) = program else { return };
        let mut command = Command::new(&program);
        let output = command
            .args(args)
            .current_dir(bindings().join(folder))
            .envs(GO_SETTINGS)
            .output()
            .expect("it starts");
        assert!(output.status.success(), "{}: {output:?}", program.display());
    };
    for file in ["test_cases.py", "test_calls.py"] {
        test(testkit::program("python3"), "python", &["-B", file]);
    }
    for file in ["test-cases.js", "test-keys.js", "test-hooks.js"] {
        test(testkit::program("node"), "node", &[file]);
    }
    test(go(), "go", &["test", "./..."]);
}

#[test]
fn java_calls_java_across_another_language() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let languages = Language::installed(folder.path());
    let Some(java) = languages.iter().find(|language| matches!(language, Language::Java(_))) else { return };
    for other in languages.iter().filter(|language| !matches!(language, Language::Java(_))) {
        check_chain(&[java.clone(), other.clone(), java.clone()]);
    }
}

#[test]
fn javas_threads_calls_and_servers() {
    if let Some(build) = java() {
        build.test();
    }
}

/// OpenTelemetry passes baggage on by itself, with the forged tags in it; the test checks what our agent
/// writes.
#[test]
fn beside_opentelemetrys_agent_in_java() {
    if let Some(java) = java().map(Language::JavaWithOpenTelemetry) {
        check_with_opentelemetry(&java);
    }
}

#[test]
fn flask_under_opentelemetry_without_a_change_of_code() {
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let Some(programs) = testkit::python_with_opentelemetry(kept) else { return };
    let test = Command::new(programs.join("python"))
        .args(["-B", "test_otel.py"])
        .current_dir(bindings().join("python"))
        .output();
    let test = test.expect("python starts");
    assert!(test.status.success(), "{test:?}");
    check_with_opentelemetry(&Language::PythonWithOpenTelemetry(programs));
}

/// Checks an edge and an inner service; each calls a stranger twice, once from another thread.
fn check_with_opentelemetry(language: &Language) {
    let (stranger, seen) = stranger();
    let stranger = format!("http://localhost:{stranger}/");
    let last = language.start("inner", &[stranger.clone(), stranger.clone()]);
    let next = format!("http://127.0.0.1:{}/", last.port);
    let first = language.start("edge", &[next.clone(), next, stranger.clone(), stranger]);
    for (path, slo_ns) in [("/", None), ("/soon", Some(50_000_000)), ("/%73oon", Some(50_000_000))] {
        let (answer, reply) = ask_for(path, first.port, "Baggage: tailwright-start=1, user=7\r\n");
        let begun = start(&answer);
        assert!(begun.abs_diff(now_ns()) < 3_600_000_000_000, "the edge stamps: {answer}");
        let deadline =
            slo_ns.map_or_else(String::new, |slo_ns| format!(",tailwright-deadline={}", begun + slo_ns));
        let tag = format!("tailwright-start={begun}{deadline}");
        assert_eq!(answer["baggage"], format!("{tag},user=7"));
        for hop in [&answer["called"][0], &answer["called"][1]] {
            let passed = hop["baggage"].as_str().and_then(|value| value.strip_prefix(&tag));
            assert!(
                is_of_others(passed.and_then(|rest| rest.strip_prefix(',')).unwrap_or("nothing")),
                "{answer}"
            );
        }
        assert_eq!(reply, ["reply=1"]);
        for _ in 0..6 {
            let values = baggage(&seen.recv().expect("the stranger was called"));
            assert!(values.len() == 1 && is_of_others(&values[0]), "{values:?}");
        }
    }
    let forged = ask(last.port, "Baggage: tailwright-start=18446744073709551615,tailwright%2Dstart=3\r\n").0;
    assert!(start(&forged).abs_diff(now_ns()) < 3_600_000_000_000, "a service inside clamps: {forged}");
}

/// Returns true for baggage written by the service itself, or by OpenTelemetry over it: its clients
/// differ.
fn is_of_others(value: &str) -> bool {
    ["user=7", "own=1"].contains(&value)
}
