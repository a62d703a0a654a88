//! `tailwright demo`: the same seed, the same cluster; nobody else's files.

use crate::support::Folder;
use crate::support::servers::signal;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            all.extend(
                files(&entry.path()).into_iter().map(|(inner, bytes)| (format!("{name}/{inner}"), bytes)),
            );
        } else {
            all.insert(name, std::fs::read(entry.path()).unwrap());
        }
    }
    // It holds how long planning took.
    all.remove("plan.json");
    // Its small print says when it was made and by which command.
    if let Some(page) = all.get_mut("plan.html") {
        let small_print =
            page.windows(7).rposition(|window| window == b"<footer").expect("pages have small print");
        page.truncate(small_print);
    }
    all
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let folder = Folder::new();
    folder.run(&["demo", "--seed", "5", "--workloads", "8", "--dir", "a"]).expect_code(0);
    folder.run(&["demo", "--seed", "5", "--workloads", "8", "--dir", "b"]).expect_code(0);
    folder.run(&["demo", "--seed", "6", "--workloads", "8", "--dir", "c"]).expect_code(0);
    let [a, b, c] = ["a", "b", "c"].map(|dir| files(&folder.join(dir)));
    assert_eq!(a.keys().collect::<Vec<_>>(), c.keys().collect::<Vec<_>>());
    assert_eq!(a.keys().filter(|name| name.starts_with("traces/")).count(), 8);
    let differ: Vec<_> = a.iter().filter(|(name, bytes)| b[*name] != **bytes).map(|(name, _)| name).collect();
    assert!(differ.is_empty(), "{differ:?}");
    assert_ne!(a["traces/mail-1.csv.gz"], c["traces/mail-1.csv.gz"]);
}

#[test]
fn the_demo_is_a_cluster_that_plan_takes() {
    let folder = Folder::new();
    let demo = folder.run(&["demo"]).expect_code(0);
    assert!(demo.stdout.starts_with("30 of 30 workloads fit on "), "{}", demo.stdout);
    let plan =
        folder.run(&["plan", "tailwright-demo/cluster.toml", "--compare", "--json"]).expect_code(0).json();
    assert_eq!(plan["workloads_admitted"], 30);
    // Its page begins with the plan, then compares, and lists its contents.
    let page = folder.read("tailwright-demo/plan.html");
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    let order = ["<nav", "<h2>Servers", "<h2>Bounds and SLOs", "<h2>Compared with", "<h2>All limits"].map(at);
    assert!(order.is_sorted(), "{order:?}");
    // Two methods whose names begin alike are whole in every drawing.
    for method in ["effective-bandwidth<", "effective-bandwidth-even<"] {
        assert!(page.matches(&format!(">{method}")).count() > 3, "{method}: three screens and a table");
    }
    // Nothing that admits as many workloads needs fewer servers, and a smaller number has its reason beside it.
    let rows = plan["compared"].as_array().unwrap();
    for row in rows {
        for order in ["first_fit", "best_order"] {
            let count = |row: &serde_json::Value, field: &str| row[order][field].as_u64().unwrap();
            let is_smaller = count(row, "servers_used") < count(&rows[0], "servers_used");
            assert!(!is_smaller || count(row, "workloads_admitted") < 30, "{row}");
            assert!(!is_smaller || row["note"].as_str().unwrap().contains("refused"), "{row}");
        }
    }
    let stored: serde_json::Value = serde_json::from_str(&folder.read("tailwright-demo/plan.json")).unwrap();
    assert_eq!(stored["workloads"], plan["workloads"]);
    assert!(folder.read("tailwright-demo/ssd-profile.json").contains("Invented"));
}

#[test]
fn an_earlier_demo_is_replaced_and_other_folders_are_left_alone() {
    let folder = Folder::new();
    folder.run(&["demo", "--workloads", "9", "--dir", "d"]).expect_code(0);
    std::fs::write(folder.join("d/notes.txt"), "mine").unwrap();
    folder.run(&["demo", "--workloads", "3", "--dir", "d"]).expect_code(0);
    let left = files(&folder.join("d"));
    assert_eq!(left.keys().filter(|name| name.starts_with("traces/")).count(), 3);
    assert_eq!(left["notes.txt"], b"mine");

    std::fs::create_dir(folder.join("other")).unwrap();
    std::fs::write(folder.join("other/cluster.toml"), "precious").unwrap();
    let refused = folder.run(&["demo", "--dir", "other"]).expect_code(2);
    assert!(
        refused.stderr.contains("something else") && refused.stderr.contains("--dir"),
        "{}",
        refused.stderr
    );
    assert_eq!(folder.read("other/cluster.toml"), "precious");
}

#[test]
fn an_interrupted_demo_leaves_the_earlier_one_as_it_was() {
    let folder = Folder::new();
    folder.run(&["demo", "--workloads", "6", "--dir", "d"]).expect_code(0);
    let dir = folder.join("d");
    let names = || files(&dir);
    let before = names();
    for delay_ms in [0, 30, 100, 300, 600] {
        let mut command = testkit::command_with_signals(env!("CARGO_BIN_EXE_tailwright"));
        command.args(["demo", "--workloads", "300", "--dir", "d"]).current_dir(folder.path());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let has_begun = || {
            let names = std::fs::read_dir(&dir)
                .expect("it is there")
                .map(|entry| entry.expect("an entry").file_name());
            names.into_iter().any(|name| name.to_string_lossy().ends_with(".partial"))
        };
        testkit::wait_until(Duration::from_secs(60), "it has begun", has_begun);
        std::thread::sleep(Duration::from_millis(delay_ms));
        signal(&child, "TERM");
        assert_eq!(
            child.wait().expect("it is ours").code(),
            Some(3),
            "300 workloads take longer than {delay_ms} ms"
        );
        assert_eq!(names().keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>(), "{delay_ms} ms");
        assert!(names() == before, "{delay_ms} ms");
    }
}

/// What the first page promises holds when the enforcers are simulated with its own traces.
#[test]
fn the_demo_keeps_what_it_promises_in_simulation() {
    let folder = Folder::new();
    folder.run(&["demo", "--workloads", "12"]).expect_code(0);
    let args =
        ["simulate", "tailwright-demo/plan.json", "--cluster", "tailwright-demo/cluster.toml", "--json"];
    let simulated = folder.run(&args).expect_code(0).json();
    let servers = simulated["servers"].as_array().expect("servers is a list").iter();
    let workloads: Vec<_> =
        servers.flat_map(|server| server["workloads"].as_array().expect("a list")).collect();
    assert_eq!(workloads.len(), 12, "{simulated}");
    for workload in workloads {
        let [longest, bound] = ["longest_s", "bound_s"].map(|field| workload[field].as_f64().expect(field));
        assert!(longest <= bound, "{workload}");
    }
}
