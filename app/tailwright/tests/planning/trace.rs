//! `tailwright trace` as its users meet it: exit codes, streams, files, messages.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of this test's own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tailwright-cli-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    fn run(&self, line: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tailwright"));
        command.env("COLUMNS", "300");
        command.current_dir(&self.0).arg("trace").args(line.split_whitespace()).output().expect("runs")
    }

    /// Runs successfully and gives stdout.
    fn ok(&self, line: &str) -> String {
        let output = self.run(line);
        let talk = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {talk}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Fails with bad input and gives stderr, which has a hint.
    fn bad(&self, line: &str) -> String {
        let output = self.run(line);
        let talk = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{line}: {talk}");
        assert!(output.stdout.is_empty() && talk.contains("hint:"), "{line}: {talk}");
        talk
    }

    fn json(&self, file: &str) -> serde_json::Value {
        serde_json::from_str(&self.ok(&format!("info --json {file}"))).expect("JSON")
    }

    fn has(&self, name: &str) -> bool {
        Path::new(&self.0).join(name).exists()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn generate_convert_slice_merge_and_look() {
    let folder = Folder::new("flow");
    folder.ok("generate poisson --rate 500/s --duration 20s --seed 7 -o t.parquet");
    let whole = folder.json("t.parquet");
    assert!((whole["gap_squared_variation"].as_f64().unwrap() - 1.0).abs() < 0.1, "{whole}");
    for name in ["t.csv", "t.csv.gz", "t.msr", "t.spc.zst", "t.iolog", "t.hex"] {
        folder.ok(&format!("convert t.parquet -o {name}"));
        assert_eq!(folder.json(name)["count"], whole["count"], "{name}");
    }
    folder.ok("slice t.csv --first-half -o a.csv");
    folder.ok("slice t.csv --second-half -o b.csv");
    folder.ok("merge b.csv a.csv -o again.csv");
    let read = |name| std::fs::read(folder.0.join(name)).unwrap();
    assert!(read("t.csv") == read("again.csv"), "two halves make the whole");
    folder.ok("generate poisson --rate 500/s --duration 20s --seed 7 -o same.csv");
    assert!(read("t.csv") == read("same.csv"), "the same seed gives the same trace");
    folder.ok("convert t.csv --scale-time 0.5 -o fast.csv");
    let text = folder.ok("convert t.parquet --as csv -o -");
    assert!(text.as_bytes() == read("t.csv"), "stdout gets what a file gets");
    let slow = whole["duration_s"].as_f64().unwrap();
    let fast = folder.json("fast.csv")["duration_s"].as_f64().unwrap();
    assert!((fast - slow / 2.0).abs() < 1e-6);
}

#[test]
fn info_prints_tables_and_pages() {
    let folder = Folder::new("info");
    folder.ok("generate on-off --rate 200/s --duration 60s --size 4KiB:3 --size 64KiB -o a.csv");
    folder.ok("generate mmpp --phase 10/s:1s --phase 500/s:100ms --duration 60s -o b.csv");
    assert!(folder.ok("info a.csv").contains("Hurst parameter"));
    let both = folder.ok("info a.csv b.csv");
    assert_eq!(both.lines().count(), 3, "{both}");
    folder.ok("info a.csv --report a.html");
    let page = std::fs::read_to_string(folder.0.join("a.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.matches("<svg").count() >= 5);
    folder.bad("info a.csv b.csv --report both.html");
}

#[test]
fn failures_say_what_to_do_and_leave_nothing_behind() {
    let folder = Folder::new("failures");
    std::fs::write(folder.0.join("bad.csv"), "arrival_ns,size_bytes,op\n1,512,read\noops\n3,512,write\n")
        .unwrap();
    std::fs::write(folder.0.join("empty.csv"), "").unwrap();
    assert!(folder.bad("info missing.csv").contains("missing.csv: No such file"));
    assert!(folder.bad("info empty.csv").contains("empty"));
    assert!(folder.bad("info bad.csv").contains("bad.csv, line 3: expected"));
    assert!(folder.bad("convert bad.csv -o out.parquet").contains("--lenient"));
    assert!(folder.bad("convert bad.csv -o out.xyz --lenient").contains("--as"));
    assert!(folder.bad("slice bad.csv --lenient --from 1h -o out.csv").contains("no request arrives"));
    assert!(folder.bad("generate b-model --rate 1/s --bias 2 --duration 1s -o out.csv").contains("bias"));
    assert!(folder.bad("convert bad.csv --lenient --as vscsi -o out.csv").contains("not written"));
    let left: Vec<_> = std::fs::read_dir(&folder.0).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    folder.ok("convert bad.csv --lenient -o out.csv");
    assert!(folder.has("out.csv"));
    assert_eq!(folder.json("out.csv")["count"], 2);
}

#[test]
fn every_help_has_an_example() {
    let folder = Folder::new("help");
    for verb in ["", "info", "convert", "slice", "merge", "generate"] {
        assert!(folder.ok(&format!("{verb} --help")).contains("Examples:"), "{verb}");
    }
}
