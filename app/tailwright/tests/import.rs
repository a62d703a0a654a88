//! `tailwright import`: the answer first, then what was not understood, then the tables; exit codes and pages.

mod support;

use support::Folder;

const PROFILE: &str = r#"{ "format": "tailwright-device-1", "name": "ssd", "device": { "ssd": { "bandwidth": [
    { "request_bytes": 4096, "read_bytes_per_s": 4.096e6, "write_bytes_per_s": 4.096e6 },
    { "request_bytes": 1048576, "read_bytes_per_s": 1e8, "write_bytes_per_s": 1e8 } ] } } }"#;

fn folder(files: &[(&str, &str)]) -> Folder {
    let folder = Folder::new();
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("it is ours");
        folder.write(name, text);
    }
    folder.write("profile.json", PROFILE);
    folder
}

#[test]
fn the_answer_comes_first_and_the_next_command_can_be_pasted() {
    let folder = folder(&[("g/a/io.max", "8:0 rbps=1000000 wbps=1000000\n")]);
    let outcome = folder.run(&["import", "g"]).expect_code(0);
    assert!(outcome.stdout.starts_with("Not known: 1 tenant has ceilings"), "{}", outcome.stdout);
    let next = outcome.stdout.lines().find(|line| line.contains("--storage")).expect("a next command");
    assert_eq!(next, "  tailwright import g --storage profile.json");
    let answered = folder.run(&["import", "g", "--storage", "profile.json"]).expect_code(0);
    assert!(answered.stdout.starts_with("Yes: the ceilings add up to at most 48.8%"), "{}", answered.stdout);
    assert!(answered.stdout.contains("g/a/io.max:1"), "{}", answered.stdout);
}

#[test]
fn no_has_exit_code_1() {
    let folder = folder(&[
        ("g/a/io.max", "8:0 rbps=150000000 wbps=1000\n"),
        ("h/a/io.max", "8:0 rbps=1000000\n"),
        ("none/a/io.max", "8:0 rbps=max\n"),
    ]);
    for (name, answer) in [
        ("g", "No: on '8:0' the ceilings add up to 1.50 times"),
        ("h", "No: on '8:0' 1 tenant has no ceiling"),
        ("none", "Nothing is limited"),
    ] {
        let outcome = folder.run(&["import", name, "--storage", "profile.json"]).expect_code(1);
        assert!(outcome.stdout.starts_with(answer), "{name}: {}", outcome.stdout);
    }
}

#[test]
fn what_is_not_understood_is_said_before_the_tables() {
    let folder = folder(&[
        ("g/a/io.max", "8:0 rbps=oops wbps=1000 zbps=7\n"),
        ("g/a/cgroup.procs", "1\n"),
        ("notes.txt", "nothing\n"),
    ]);
    let outcome = folder.run(&["import", "g", "notes.txt"]).expect_code(0);
    let place =
        |part: &str| outcome.stdout.find(part).unwrap_or_else(|| panic!("{part}: {}", outcome.stdout));
    assert!(place("1 file or value could not be read: g/a/io.max:1") < place("tenant  place"));
    assert!(place("1 key is unknown and not counted: io.max zbps") < place("tenant  place"));
    assert!(place("1 file in no known format") < place("tenant  place"));
    folder.run(&["import", "missing"]).expect_code(2);
}

#[test]
fn the_document_and_the_page_have_the_limits() {
    let folder = folder(&[("g/a/io.max", "8:0 rbps=1000000 wbps=1000000\n")]);
    let args = ["import", "g", "--storage", "profile.json", "--json", "--report", "page.html"];
    let document = folder.run(&args).expect_code(0).json();
    assert_eq!(document["verdict"], "adds_up");
    assert_eq!(document["limits"][1]["origin"]["file"], "g/a/io.max");
    assert_eq!(document["places"][0]["sizes"][1]["request_bytes"], 1_048_576);
    let page = folder.read("page.html");
    assert!(page.contains("g/a/io.max:1") && page.contains("Ceilings as a share of the device"), "{page}");
}

#[test]
fn the_limits_of_a_policy_are_within_its_server() {
    let folder = Folder::new();
    folder.run(&["demo", "--workloads", "6", "--dir", "d"]).expect_code(0);
    let document = folder.run(&["import", "d/plan.json", "--storage", "d/ssd-profile.json", "--json"]).json();
    assert_eq!(document["files"]["policy"], 1);
    let places = document["places"].as_array().expect("places");
    let shares = places.iter().map(|sum| (&sum["ceilings"], &sum["capacity"]));
    for (ceilings, capacity) in shares {
        assert!(ceilings.as_f64().expect("a number") <= capacity.as_f64().expect("a number"), "{document}");
    }
}
