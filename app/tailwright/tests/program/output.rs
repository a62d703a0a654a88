//! Where results go: files that are there already, what is no file, and outputs that take nothing.

use crate::support::Folder;
use crate::support::cluster::Cluster;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[test]
fn results_go_where_links_lead_and_keep_modes_and_devices() {
    let cluster = Cluster::new(2, 2);
    let folder = &cluster.folder;
    folder.write("secret.json", "{}");
    fs::set_permissions(folder.join("secret.json"), fs::Permissions::from_mode(0o600)).expect("it is ours");
    symlink("secret.json", folder.join("link.json")).expect("it is ours");
    folder.run(&["plan", "cluster.toml", "-o", "link.json"]).expect_code(0);
    assert!(fs::symlink_metadata(folder.join("link.json")).expect("it is there").is_symlink());
    assert!(folder.read("secret.json").contains("\"servers\"") && mode(&folder.join("secret.json")) == 0o600);
    // Of all verbs that write, one for each way of writing: whole texts, traces, observations.
    symlink("/dev/null", folder.join("null.csv")).expect("it is ours");
    symlink("/dev/null", folder.join("null.parquet")).expect("it is ours");
    for args in [
        &["plan", "cluster.toml", "-o", "/dev/null"][..],
        &["trace", "convert", "w0.csv", "-o", "null.csv"],
        &["simulate", "secret.json", "--cluster", "cluster.toml", "-o", "null.parquet"],
    ] {
        // The simulation is too short to be sure of every SLO.
        let outcome = folder.run(args);
        assert!(outcome.code < 2, "{args:?}: {}", outcome.stderr);
    }
    assert!(fs::metadata("/dev/null").expect("it is there").file_type().is_char_device());
    assert!(fs::symlink_metadata(folder.join("null.csv")).expect("it is there").is_symlink());
}

#[test]
fn places_are_checked_before_anything_is_done() {
    let cluster = Cluster::new(2, 2);
    let folder = &cluster.folder;
    folder.write(
        "load.toml",
        "duration = \"1s\"\n[[workload]]\nname = \"w\"\ntarget = \"nbd://127.0.0.1:1/x\"\n\
         closed = { outstanding = 1, op = \"read\", size = \"4KiB\" }\n",
    );
    folder.write("scenario.toml", "not even read");
    folder.write("file", "");
    for args in [
        &["plan", "cluster.toml", "-o", "no/where.json"][..],
        &["plan", "cluster.toml", "--report", "no/where.html"],
        &["plan", "cluster.toml", "--model", "replayed", "-o", "no/where.json"],
        &["bound", "cluster.toml", "--report", "no/where.html"],
        &["admit", "cluster.toml", "--model", "worst-case", "-o", "file/where.json"],
        &["load", "load.toml", "-o", "no/where.parquet"],
        &["profile", "file", "-o", "no/where.json"],
        &["simulate", "scenario.toml", "--report", "no/where.html"],
        &["simulate", "policy.json", "--cluster", "cluster.toml", "-o", "no/where.parquet"],
        &["verify", "--load-file", "load.toml", "--slo", "w=99% < 1s", "--report", "no/where.html"],
        &["trace", "convert", "w0.csv", "-o", "no/where.csv"],
        &["lab", "cluster", "-o", "no/where.json"],
        &["reproduce", "--report", "no/where.html"],
        &["ideal", "--service", "1ms", "--arrivals", "poisson(1/s)", "--report", "no/where.html"],
    ] {
        let outcome = folder.run(args).expect_code(3);
        assert!(
            outcome.stderr.contains("where") && outcome.stderr.contains("hint"),
            "{args:?}: {}",
            outcome.stderr
        );
        assert_eq!(outcome.stdout, "", "{args:?}");
    }
}

#[test]
fn errors_of_standard_output_are_errors() {
    let cluster = Cluster::new(2, 2);
    let folder = &cluster.folder;
    for args in
        [&["plan", "cluster.toml", "--json"][..], &["bound", "cluster.toml"], &["reproduce", "--list"]]
    {
        let full = OpenOptions::new().write(true).open("/dev/full").expect("it is there");
        let mut command = Command::new(env!("CARGO_BIN_EXE_tailwright"));
        command.args(args).current_dir(folder.path()).stdout(full).stderr(Stdio::piped());
        let output =
            command.env("XDG_CACHE_HOME", folder.join("cache")).output().expect("the program starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{args:?}: {said}");
        assert!(said.contains("standard output cannot be written: No space left"), "{said}");
    }
}

/// A reader that goes away is no error, and what goes to files is complete.
#[test]
fn a_closed_pipe_is_quiet() {
    let cluster = Cluster::new(2, 2);
    let folder: &Folder = &cluster.folder;
    let mut command = Command::new(env!("CARGO_BIN_EXE_tailwright"));
    command.args(["plan", "cluster.toml", "-o", "policy.json", "--report", "page.html"]);
    command.current_dir(folder.path()).env("XDG_CACHE_HOME", folder.join("cache"));
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(0) && !said.contains("error"), "{said}");
    assert!(
        folder.read("policy.json").contains("\"servers\"") && folder.read("page.html").ends_with("</html>\n")
    );
}

/// Results of every verb over what the same command reads, or another result: refused, and nothing is written.
#[test]
fn no_result_takes_the_place_of_what_is_read() {
    let cluster = Cluster::new(2, 2);
    let folder = &cluster.folder;
    folder.run(&["plan", "cluster.toml", "-o", "policy.json"]).expect_code(0);
    folder.run(&["simulate", "policy.json", "--cluster", "cluster.toml", "-o", "seen.parquet"]);
    folder.write("groups.csv", "workload,group\nw0,a\nw1,b\n");
    folder.write("events.txt", "arrive w0\n");
    folder.write(
        "load.toml",
        "duration = \"1s\"\n[[workload]]\nname = \"w\"\ntarget = \"nbd://127.0.0.1:1/x\"\ntrace = \"w0.csv\"\n",
    );
    folder.write(
        "scenario.toml",
        "[run]\nrequests = 100\n[[station]]\nname = \"queue\"\nworkers = 1\ndiscipline = \"fifo\"\n[[entry]]\n\
         trace = \"w0.csv\"\nservice = { queue = \"exp(1ms)\" }\n",
    );
    symlink("w0.csv", folder.join("link.csv")).expect("it is ours");
    fs::create_dir(folder.join("parts")).expect("it is ours");
    fs::copy(folder.join("seen.parquet"), folder.join("parts/w0.parquet")).expect("it is ours");
    let names =
        ["cluster.toml", "policy.json", "seen.parquet", "w0.csv", "ssd.json", "slos.csv", "load.toml"];
    let contents = || {
        let all = names.iter().chain(&["groups.csv", "events.txt", "scenario.toml", "parts/w0.parquet"]);
        all.map(|name| fs::read(folder.join(name)).expect("it is there")).collect::<Vec<_>>()
    };
    let before = contents();
    let flags = ["--storage", "ssd.json", "--network", "1Gbps", "--max-servers", "2"];
    let with_flags = |first: &[&'static str]| [first, &flags].concat();
    let rows: [Vec<&str>; 28] = [
        vec!["plan", "cluster.toml", "-o", "cluster.toml"],
        vec!["plan", "cluster.toml", "-o", "./w0.csv"],
        vec!["plan", "cluster.toml", "-o", "link.csv"],
        vec!["plan", "cluster.toml", "-o", "ssd.json"],
        vec!["plan", "cluster.toml", "--report", "w0.csv"],
        vec!["plan", "cluster.toml", "-o", "new", "--report", "new"],
        vec!["plan", "cluster.toml", "--model", "replayed", "-o", "w0.csv"],
        vec!["plan", "cluster.toml", "--keep", "policy.json", "--report", "policy.json"],
        with_flags(&["plan", "-o", "slos.csv", "--slos", "slos.csv"]),
        with_flags(&["plan", "-o", "w0.csv", "--slos", "slos.csv"]),
        vec!["bound", "cluster.toml", "--report", "cluster.toml"],
        vec!["bound", "cluster.toml", "--report", "w0.csv"],
        vec!["bound", "cluster.toml", "--groups", "groups.csv", "--report", "groups.csv"],
        vec!["admit", "cluster.toml", "-o", "w0.csv"],
        vec!["admit", "cluster.toml", "--events", "events.txt", "-o", "events.txt"],
        vec!["simulate", "policy.json", "--cluster", "cluster.toml", "-o", "policy.json"],
        vec!["simulate", "policy.json", "--cluster", "cluster.toml", "-o", "cluster.toml"],
        vec!["simulate", "scenario.toml", "--report", "scenario.toml"],
        vec!["simulate", "scenario.toml", "--report", "w0.csv"],
        vec!["verify", "policy.json", "seen.parquet", "--report", "seen.parquet"],
        vec!["load", "load.toml", "-o", "load.toml"],
        vec!["load", "load.toml", "--hdr-folder", "logs", "-o", "logs/w.hlog"],
        vec!["verify", "policy.json", "--load-file", "load.toml", "--report", "w0.csv"],
        vec!["trace", "convert", "w0.csv", "-o", "w0.csv"],
        vec!["trace", "merge", "w1.csv", "w0.csv", "-o", "link.csv"],
        vec!["trace", "slice", "w0.csv", "--first-half", "-o", "./w0.csv"],
        vec!["trace", "info", "w0.csv", "--report", "w0.csv"],
        vec!["trace", "split", "parts/w0.parquet", "-o", "parts"],
    ];
    for args in &rows {
        let outcome = folder.run(args).expect_code(2);
        assert!(outcome.stderr.contains("expected another file"), "{args:?}: {}", outcome.stderr);
        assert!(outcome.stdout.is_empty() && contents() == before, "{args:?}: {}", outcome.stdout);
    }
    assert!(!folder.join("new").exists());
    // A plan may replace the one that it keeps to, and two results may go nowhere.
    folder.run(&["plan", "cluster.toml", "--keep", "policy.json", "-o", "policy.json"]).expect_code(0);
    folder.run(&["plan", "cluster.toml", "-o", "/dev/null", "--report", "/dev/null"]).expect_code(0);
}

/// As [`no_result_takes_the_place_of_what_is_read`], where a shell or a folder hides what is read.
#[test]
fn hidden_inputs_are_not_replaced_either() {
    let cluster = Cluster::new(2, 2);
    let folder = &cluster.folder;
    let settings = trace::recording::RecordingSettings::default();
    let mut writer =
        trace::recording::RecordingWriter::create(&folder.join("rec"), settings).expect("it is ours");
    let request = trace::recording::RecordableRequest {
        arrival: units::Nanos(0),
        op: model::Op::Read,
        size: units::Bytes(4096),
        offset: None,
        response: units::Nanos(1000),
        waited: units::Nanos(10),
        workload: "w",
        client: None,
    };
    writer.write(&request, units::Nanos(1000)).expect("it is ours");
    writer.finish(units::Nanos(1000)).expect("it is ours");
    let segment = trace::recording::segment_files(&folder.join("rec")).expect("it is there");
    let segment = segment[0].strip_prefix(folder.path()).expect("it is in there").display().to_string();
    for script in [
        "plan - -o cluster.toml < cluster.toml",
        "trace convert - --scale-time 2 -o w0.csv < w0.csv",
        &format!("verify rec --slo 'w=99% < 1s' --report {segment}"),
        &format!("trace convert 'rec#*' --as csv -o {segment}"),
    ] {
        let before =
            ["cluster.toml", "w0.csv", &segment].map(|name| fs::read(folder.join(name)).expect("there"));
        let refused = in_shell(folder, script);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            refused.status.code() == Some(2) && said.contains("expected another file"),
            "{script}: {said}"
        );
        let after =
            ["cluster.toml", "w0.csv", &segment].map(|name| fs::read(folder.join(name)).expect("there"));
        assert_eq!(before, after, "{script}");
    }
    // Behind # an input says whose requests are meant; a result has it in its name.
    folder.run(&["trace", "convert", "w0.csv", "-o", "w0.csv#2.csv"]).expect_code(0);
    assert!(folder.join("w0.csv#2.csv").exists());
}

/// A command of the program in a shell.
fn in_shell(folder: &Folder, script: &str) -> std::process::Output {
    let mut shell = Command::new("sh");
    let script = format!("\"$PROGRAM\" {script}");
    shell.args(["-c", &script]).current_dir(folder.path()).env("PROGRAM", env!("CARGO_BIN_EXE_tailwright"));
    shell.env("XDG_CACHE_HOME", folder.join("cache")).output().expect("there is sh")
}

#[test]
fn what_the_shell_has_opened_is_written_behind_what_is_there() {
    let cluster = Cluster::new(2, 2);
    let folder = &cluster.folder;
    folder.write("log", "precious\n");
    for script in ["plan cluster.toml --json -o /dev/stdout >> log", "plan cluster.toml -o /dev/fd/3 3>> log"]
    {
        let before = folder.read("log");
        let output = in_shell(folder, script);
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        let after = folder.read("log");
        assert!(
            after.starts_with(&before) && after[before.len()..].contains("\"servers\""),
            "{script}: {after}"
        );
    }
}

/// What is printed by each way of printing: tables, JSON, traces, results by a name of the shell, help.
#[test]
fn a_standard_output_that_was_closed_before_is_an_error() {
    let cluster = Cluster::new(2, 2);
    let folder = &cluster.folder;
    for command in [
        "plan cluster.toml",
        "bound cluster.toml --json",
        "reproduce --list",
        "plan cluster.toml -o /dev/stdout",
        "completions bash",
        "--help",
        "schedule demo --help",
        "--version",
    ] {
        let output = in_shell(folder, &format!("{command} >&-"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{command}: {said}");
        assert!(said.contains("Bad file descriptor"), "{command}: {said}");
        assert!(in_shell(folder, command).status.success(), "{command}");
    }
    for output in [">&-", "> /dev/full"] {
        let trace = in_shell(folder, &format!("trace convert w0.csv --as csv -o - {output}"));
        let said = String::from_utf8_lossy(&trace.stderr);
        assert_eq!(trace.status.code(), Some(3), "{output}: {said}");
        assert!(said.contains("the standard output cannot be written"), "{output}: {said}");
    }
    // What is wrong with the trace itself is still the user's.
    folder.write("bad.csv", "arrival_ns,size,op\n1,2,neither\n");
    assert_eq!(in_shell(folder, "trace convert bad.csv --as csv -o -").status.code(), Some(2));
    // Whoever asks for a file and reads nothing gets the file, and is told.
    let output = in_shell(folder, "plan cluster.toml -o policy.json >&-");
    assert_eq!(output.status.code(), Some(3));
    assert!(folder.read("policy.json").contains("\"servers\""));
    // Bad input is the first to be said.
    assert_eq!(in_shell(folder, "plan absent.toml >&-").status.code(), Some(2));
    // /dev/null is open.
    assert!(in_shell(folder, "plan cluster.toml > /dev/null").status.success());
}

/// Whoever reads the table no more still gets the answer, and the files.
#[test]
fn the_exit_code_is_that_of_the_answer_whoever_reads() {
    let cluster = Cluster::new(2, 1);
    let folder = &cluster.folder;
    folder.write("cluster.toml", &folder.read("cluster.toml").replace("100ms", "1us"));
    assert_eq!(in_shell(folder, "plan cluster.toml").status.code(), Some(1));
    let (reader, writer) = std::io::pipe().expect("there are pipes");
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tailwright"));
    command.args(["plan", "cluster.toml", "-o", "policy.json"]).current_dir(folder.path()).stdout(writer);
    let output = command.stderr(Stdio::piped()).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    for options in ["-o full.json", "--report full.html"] {
        let output = in_shell(folder, &format!("plan cluster.toml {options} > /dev/full"));
        assert_eq!(output.status.code(), Some(3), "{options}");
    }
    for file in ["policy.json", "full.json", "full.html"] {
        assert!(folder.join(file).exists(), "{file}");
    }
}

/// Its reader could have been there until now: nothing is wrong with folders.
#[test]
fn a_pipe_whose_reader_has_gone_has_a_hint_about_readers() {
    let cluster = Cluster::new(2, 1);
    let folder = &cluster.folder;
    assert!(Command::new("mkfifo").arg(folder.join("pipe")).status().expect("there is mkfifo").success());
    for args in [
        &["plan", "cluster.toml", "-o", "pipe"][..],
        &["trace", "convert", "w0.csv", "--as", "csv", "-o", "pipe"],
    ] {
        let said = folder.run(args).expect_code(3).stderr;
        assert!(said.contains("nobody reads this pipe"), "{args:?}: {said}");
        assert!(said.contains("reader of the pipe") && !said.contains("folder"), "{args:?}: {said}");
    }
}

/// Names of files are bytes; what is shown of them is text.
#[test]
fn names_that_are_not_utf8_are_taken_and_shown() {
    let cluster = Cluster::new(2, 2);
    let folder = &cluster.folder;
    let name = OsStr::from_bytes(b"c\xe9.toml");
    fs::copy(folder.join("cluster.toml"), folder.path().join(name)).expect("it is ours");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tailwright"));
    command.arg("plan").arg(name).args(["--report", "page.html"]).current_dir(folder.path());
    let output = command.env("XDG_CACHE_HOME", folder.join("cache")).output().expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("next:"));
    assert!(folder.read("page.html").contains("c\u{fffd}.toml"));
}

#[test]
fn observations_have_a_name_of_parquet() {
    let cluster = Cluster::new(2, 2);
    let folder = &cluster.folder;
    folder.run(&["plan", "cluster.toml", "-o", "policy.json"]).expect_code(0);
    for name in ["live.csv", "live.csv.gz", "live.json", "live.parquet.gz"] {
        let args = ["simulate", "policy.json", "--cluster", "cluster.toml", "-o", name];
        let outcome = folder.run(&args).expect_code(2);
        assert!(outcome.stderr.contains("ends in .parquet"), "{name}: {}", outcome.stderr);
        assert!(!folder.join(name).exists(), "{name}");
    }
}
