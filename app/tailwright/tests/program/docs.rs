//! The documents tell the truth: their commands run, exit as they say and print what they show.
//!
//! Per document, in order and in one folder that is empty at first:
//! - A block ```` ```toml cluster.toml ```` (any language, then a file name) becomes that file.
//! - In a block ```` ```console ````, a line `$ tailwright …` or `$ cargo run --release -- …` is run; `\` at its end
//!   continues it in the next line. It exits with 0, or with what `# exit N` at its end says. The lines below it are
//!   what it writes to a terminal of 100 columns. A line `...` stands for any lines, and `…` at the end of a line for
//!   the rest of it.
//! - ```` ```console traces ```` is a block that needs the real traces, in a folder `traces`.
//!
//! A time at the end of a line is not compared: it is how long something took.
//!
//! With the variable `TAILWRIGHT_RENEW_DOCS`, lines that are printed otherwise now are replaced in the documents.
//!
//! Pages also keep to the length of their kind, every verb has a reference page, and links lead to headings that exist.

use crate::support::transcript::{missing_lines, renewed, with_lines};
use crate::support::{Folder, TerminalOutcome};
use std::path::{Path, PathBuf};

/// New lines of a document: index of the first line that they replace, how many they replace, the lines.
type Edit = (usize, usize, Vec<String>);

fn run_document(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let folder = Folder::new();
    let mut edits = Vec::new();
    for block in blocks(&text) {
        match block.info[..] {
            ["console"] => edits.extend(run_block(name, &block, &folder)),
            ["console", "traces"] => {
                if let Some(traces) = testkit::shared("traces") {
                    link(&traces, &folder.join("traces"));
                    edits.extend(run_block(name, &block, &folder));
                }
            }
            [_, file] => folder.write(file, &block.lines.join("\n")),
            _ => {}
        }
    }
    if !edits.is_empty() {
        std::fs::write(&path, with_lines(&text, &edits)).expect("documents can be written");
    }
}

fn link(traces: &Path, place: &PathBuf) {
    if !place.exists() {
        std::os::unix::fs::symlink(traces, place).expect("the folder is ours");
    }
}

pub(crate) struct Block<'a> {
    /// Line of the opening fence, from 1.
    line: usize,
    pub(crate) info: Vec<&'a str>,
    pub(crate) lines: Vec<&'a str>,
}

pub(crate) fn blocks(text: &str) -> Vec<Block<'_>> {
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

/// Runs the commands of a block, and gives the new lines where they are wanted and differ.
fn run_block(name: &str, block: &Block, folder: &Folder) -> Vec<Edit> {
    let mut edits = Vec::new();
    let mut at = 0;
    while at < block.lines.len() {
        let place = format!("{name}:{}", block.line + at + 1);
        let (command, count) = command_at(&block.lines[at..]);
        let command = command.strip_prefix("$ ");
        let command = command.unwrap_or_else(|| panic!("{place}: expected a command after '$ '"));
        at += count;
        let shown: Vec<&str> =
            block.lines[at..].iter().copied().take_while(|line| !line.starts_with("$ ")).collect();
        let outcome = run_command(&place, command, folder);
        if std::env::var_os("TAILWRIGHT_RENEW_DOCS").is_some() {
            let lines = renewed(&shown, &outcome.shown);
            edits.extend((lines != shown).then_some((block.line + at, shown.len(), lines)));
        } else if let Some(missing) = missing_lines(&shown, &outcome.shown) {
            panic!(
                "{place}: not printed, or not there:\n{missing}\nprinted:\n{}\nCONTRIBUTING.md says how to renew it",
                outcome.shown
            );
        }
        at += shown.len();
    }
    edits
}

/// The command at the first of these lines, and how many lines it has: a `\` at the end of a line continues it.
fn command_at(lines: &[&str]) -> (String, usize) {
    let mut command = lines[0].to_owned();
    let mut count = 1;
    while let (Some(beginning), Some(next)) = (command.strip_suffix('\\'), lines.get(count)) {
        command = format!("{beginning}{}", next.trim_start());
        count += 1;
    }
    (command, count)
}

fn run_command(place: &str, command: &str, folder: &Folder) -> TerminalOutcome {
    let (command, code) = match command.split_once(" # exit ") {
        Some((command, code)) => (command, code.trim().parse().expect("an exit code")),
        None => (command, 0),
    };
    let args =
        command.strip_prefix("tailwright ").or_else(|| command.strip_prefix("cargo run --release -- "));
    let args = args.unwrap_or_else(|| panic!("{place}: '{command}' is not a command of tailwright"));
    let outcome = folder.run_on_terminal(&words(args));
    assert_eq!(outcome.code, code, "{place}: exit code\n{}", outcome.shown);
    outcome
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

#[test]
fn shown_lines_are_those_that_are_printed() {
    let printed = "planned in 23ms.\n\n  a    b\nknee   6  917.3us\nlast line of all\n";
    for (is_right, shown) in [
        (true, &[][..]),
        (true, &["planned in 1.2s.", "  a  b", "knee  6  2ms", "last line of all"]),
        (true, &["...", "  a  b", "..."]),
        (true, &["planned …", "...", "last line of all"]),
        (true, &["...", "knee  6", "last …"]),
        (false, &["planned in 1.2s."]),
        (false, &["  a b", "..."]),
        (false, &["...", "  a  b"]),
        (false, &["...", "  a  b", "last line of all"]),
        (false, &["...", "knee  7  1ms", "..."]),
        (false, &["...", "last line of all", "  a  b", "..."]),
        (false, &["...", "a  b", "..."]),
        (false, &["1", "2", "3", "4", "5"]),
    ] {
        assert_eq!(missing_lines(shown, printed).is_none(), is_right, "{shown:?}");
        let lines = renewed(shown, printed);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(missing_lines(&lines, printed), None, "{shown:?} became {lines:?}");
    }
}

#[test]
fn renewed_lines_are_those_that_changed() {
    let printed =
        "5 of 6 fit.\n\nname  bound\nmail  3.2ms\nweb   4.5ms\nA sentence of\n  many words.\nnext\n";
    let shown = ["6 of 6 fit.", "name  other  bound", "web   7   4.5ms", "A sentence of many words."];
    let expected =
        ["5 of 6 fit.", "", "name  bound", "...", "web   4.5ms", "A sentence of", "  many words.", "..."];
    assert_eq!(renewed(&shown, printed), expected);
    assert_eq!(renewed(&expected, printed), expected);
    assert_eq!(with_lines("a\nb\nc\n", &[(1, 1, vec!["x".into(), "y".into()])]), "a\nx\ny\nc\n");
}

#[test]
fn readme() {
    run_document("README.md");
}

#[test]
fn pages() {
    let pages = pages_below("docs");
    assert!(pages.len() >= 2, "found only {pages:?}");
    pages.iter().for_each(|page| run_document(page));
}

/// The Markdown files below a folder of the repository, by name.
fn pages_below(folder: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let entries = std::fs::read_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut pages = Vec::new();
    for entry in entries {
        let entry = entry.expect("the folder can be listed");
        let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            pages.extend(pages_below(&name));
        } else if name.ends_with(".md") {
            pages.push(name);
        }
    }
    pages.sort();
    pages
}

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The most words or lines of a page, by its folder: a longer page answers more than one question.
#[test]
fn pages_answer_one_question() {
    let mut long = Vec::new();
    for (folder, words_max, lines_max) in [
        ("docs/guides", 1_200, usize::MAX),
        ("docs/reference", usize::MAX, 200),
        ("docs/explanation", 2_000, usize::MAX),
    ] {
        for page in pages_below(folder) {
            let text = read(&page);
            let words = text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count();
            let lines = text.lines().count();
            if words > words_max || lines > lines_max {
                long.push(format!("{page}: {words} words, {lines} lines"));
            }
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn every_verb_has_a_reference_page() {
    /// Described in docs/reference/conventions.md.
    const WITHOUT_PAGE: [&str; 3] = ["completions", "man", "help"];
    let help = Folder::new().run(&["--help"]).expect_code(0).stdout;
    let verbs: Vec<&str> = help
        .lines()
        .filter_map(|line| line.strip_prefix("  ").filter(|rest| rest.starts_with(char::is_alphabetic)))
        .filter_map(|line| line.split("  ").next())
        .filter(|word| !word.contains(' ') && !WITHOUT_PAGE.contains(word))
        .collect();
    assert!(verbs.contains(&"plan") && verbs.len() >= 18, "the help lists only {verbs:?}");
    let pages = pages_below("docs/reference");
    let lacking: Vec<&str> =
        verbs.into_iter().filter(|verb| !pages.contains(&format!("docs/reference/{verb}.md"))).collect();
    assert!(lacking.is_empty(), "no page in docs/reference: {lacking:?}");
}

#[test]
fn links_lead_to_headings_that_exist() {
    let mut pages = pages_below("docs");
    pages.extend(pages_below("evaluation/results"));
    pages.push("README.md".to_owned());
    let mut broken = Vec::new();
    for page in &pages {
        let folder = Path::new(page).parent().expect("a page lies in a folder").to_path_buf();
        for target in link_targets(&read(page)) {
            let (file, heading) = target.split_once('#').unwrap_or((&target, ""));
            let path = if file.is_empty() { PathBuf::from(page) } else { folder.join(file) };
            let full = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(&path);
            let is_there = match std::fs::read_to_string(&full) {
                Ok(text) => heading.is_empty() || headings(&text).iter().any(|one| one == heading),
                // A folder, or a picture.
                Err(_) => full.exists() && heading.is_empty(),
            };
            if !is_there {
                broken.push(format!("{page}: {target}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

fn without_blocks(text: &str) -> String {
    format!("\n{text}").split("\n```").step_by(2).collect::<Vec<_>>().join("\n")
}

/// The targets of links within the repository.
fn link_targets(text: &str) -> Vec<String> {
    let prose = without_blocks(text);
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://")).map(str::to_owned).collect()
}

/// The names by which links reach the headings of a page, as GitHub makes them.
fn headings(text: &str) -> Vec<String> {
    let prose = without_blocks(text);
    let titles = prose.lines().filter(|line| line.starts_with('#'));
    let name = |title: &str| {
        let words = title.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    titles.map(name).collect()
}

#[test]
fn headings_have_the_names_that_links_use() {
    let text =
        "# A *page*, of `--all`\n```\n# no heading\n```\n## What it needs\n[x](a.md#b) [y](https://z)\n";
    assert_eq!(headings(text), ["a-page-of---all", "what-it-needs"]);
    assert_eq!(link_targets(text), ["a.md#b"]);
}
