//! The documents tell the truth: their commands run, exit as they say and print what they show.
//!
//! Per document, in order and in one folder that is empty at first:
//! - A block ```` ```toml cluster.toml ```` (any language, then a file name) becomes that file.
//! - In a block ```` ```console ````, a line `$ tailwright …` or `$ cargo run --release -- …` is run. It exits with
//!   0, or with what `# exit N` at its end says. The lines below it occur in this order in what it prints
//!   (stderr, then stdout). A line `...` stands for any lines, and `…` at the end of a line for the rest of it.
//! - ```` ```console traces ```` is a block that needs the real traces, in a folder `traces`.
//!
//! Output is as on a wide terminal, where nothing is left out and no line is broken.
//!
//! A time at the end of a line is not compared: it is how long something took.

mod support;

use std::path::{Path, PathBuf};
use support::{Folder, Outcome};

fn run_document(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let folder = Folder::new();
    for block in blocks(&text) {
        match block.info[..] {
            ["console"] => run_block(name, &block, &folder),
            ["console", "traces"] => {
                if let Some(traces) = testkit::shared("traces") {
                    link(&traces, &folder.join("traces"));
                    run_block(name, &block, &folder);
                }
            }
            [_, file] => folder.write(file, &block.lines.join("\n")),
            _ => {}
        }
    }
}

fn link(traces: &Path, place: &PathBuf) {
    if !place.exists() {
        std::os::unix::fs::symlink(traces, place).expect("the folder is ours");
    }
}

struct Block<'a> {
    /// Line of the opening fence, from 1.
    line: usize,
    info: Vec<&'a str>,
    lines: Vec<&'a str>,
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in text.lines().enumerate() {
        match (open.as_mut(), line.strip_prefix("```")) {
            (None, Some(info)) => {
                let info = info.split_whitespace().collect();
                open = Some(Block { line: index + 1, info, lines: Vec::new() });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => block.lines.push(line),
            (None, None) => {}
        }
    }
    blocks
}

fn run_block(name: &str, block: &Block, folder: &Folder) {
    let mut at = 0;
    while at < block.lines.len() {
        let place = format!("{name}:{}", block.line + at + 1);
        let command = block.lines[at].strip_prefix("$ ");
        let command = command.unwrap_or_else(|| panic!("{place}: expected a command after '$ '"));
        let shown: Vec<&str> =
            block.lines[at + 1..].iter().copied().take_while(|line| !line.starts_with("$ ")).collect();
        run_command(&place, command, &shown, folder);
        at += 1 + shown.len();
    }
}

fn run_command(place: &str, command: &str, shown: &[&str], folder: &Folder) {
    let (command, code) = match command.split_once(" # exit ") {
        Some((command, code)) => (command, code.trim().parse().expect("an exit code")),
        None => (command, 0),
    };
    let args =
        command.strip_prefix("tailwright ").or_else(|| command.strip_prefix("cargo run --release -- "));
    let args = args.unwrap_or_else(|| panic!("{place}: '{command}' is not a command of tailwright"));
    let outcome = folder.run(&words(args)).expect_code(code);
    check_lines(place, shown, &outcome);
}

/// Words of a command line; double quotes keep spaces.
fn words(line: &str) -> Vec<&str> {
    let pieces = line.split('"').enumerate();
    pieces
        .flat_map(
            |(index, piece)| {
                if index % 2 == 1 { vec![piece] } else { piece.split_whitespace().collect() }
            },
        )
        .collect()
}

fn check_lines(place: &str, shown: &[&str], outcome: &Outcome) {
    let printed = format!("{}{}", outcome.stderr, outcome.stdout);
    let mut rest = printed.lines();
    for wanted in shown.iter().filter(|line| line.trim() != "..." && !line.trim().is_empty()) {
        let found = rest.any(|line| match wanted.strip_suffix('…') {
            Some(beginning) => line.starts_with(beginning),
            None => comparable(line) == comparable(wanted),
        });
        assert!(found, "{place}: not printed, or not in this order:\n{wanted}\nprinted:\n{printed}");
    }
}

/// A line without the time at its end, if there is one, and without spaces there.
fn comparable(line: &str) -> &str {
    let line = line.trim_end();
    let (before, last) = line.rsplit_once(' ').unwrap_or(("", line));
    if is_time(last.trim_end_matches(['.', ';'])) { before.trim_end() } else { line }
}

fn is_time(word: &str) -> bool {
    let number = word.trim_end_matches(|c: char| c.is_ascii_lowercase());
    number.parse::<f64>().is_ok() && ["ns", "us", "ms", "s"].contains(&&word[number.len()..])
}

#[test]
fn times_at_the_end_are_not_compared() {
    for (line, expected) in [
        ("planned in 23ms.", "planned in"),
        ("knee   6  30 of 30  917.3us", "knee   6  30 of 30"),
        ("30 of 30  ", "30 of 30"),
        ("ssd-1", "ssd-1"),
    ] {
        assert_eq!(comparable(line), expected);
    }
}

#[test]
fn readme() {
    run_document("README.md");
}

#[test]
fn pages() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let names = entries.map(|entry| entry.expect("the folder can be listed").file_name());
    let mut pages: Vec<String> = names.map(|name| format!("docs/{}", name.to_string_lossy())).collect();
    pages.retain(|page| page.ends_with(".md"));
    pages.sort();
    assert!(pages.len() >= 2, "found only {pages:?}");
    pages.iter().for_each(|page| run_document(page));
}
