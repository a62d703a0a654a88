//! The code map: in the `README.md` of each system, a table with the header `| crate | what it is | start reading |`
//! and a row for each crate of the folder.
//!
//! Crates and files are in backticks, files as paths from the crate's folder. A crate's description is that of its
//! `Cargo.toml`, and its package has the name of its folder.

use super::manifest::Crate;
use std::path::Path;

const HEADER: &str = "| crate | what it is | start reading |";

/// The page of a system is one page.
const LINES_MAX: usize = 60;

/// The page that maps the crates of one system.
pub(crate) struct SystemPage {
    /// The folder of the workspace's root.
    pub(crate) system: &'static str,
    pub(crate) text: String,
}

struct MapRow<'a> {
    krate: &'a str,
    description: &'a str,
    start: &'a str,
}

/// Complains about crates without exactly one true row, and about rows without a crate. `root` is the workspace's.
pub(crate) fn check(root: &Path, pages: &[SystemPage], crates: &[Crate]) -> Vec<String> {
    pages.iter().flat_map(|page| check_page(root, page, crates)).collect()
}

fn check_page(root: &Path, page: &SystemPage, crates: &[Crate]) -> Vec<String> {
    let file = format!("{}/README.md", page.system);
    let rows = rows(&page.text);
    let mut complaints = Vec::new();
    let lines = page.text.lines().count();
    if lines > LINES_MAX {
        complaints.push(format!("{file}: {lines} lines, at most {LINES_MAX}; move details to docs/"));
    }
    if rows.is_empty() {
        complaints.push(format!("{file}: expected a table of crates with the header '{HEADER}'"));
    }
    for krate in crates.iter().filter(|krate| krate.system() == page.system) {
        let name = krate.folder_name();
        if krate.name() != name {
            complaints.push(format!(
                "{}/Cargo.toml: the package is called {}; expected {name} or tailwright-{name}, as its folder",
                krate.folder, krate.package
            ));
        }
        let of_crate: Vec<&MapRow> = rows.iter().filter(|row| row.krate == name).collect();
        match of_crate[..] {
            [row] if row.description == krate.description => {}
            [row] => complaints.push(format!(
                "{file}: describes {name} as '{}', its Cargo.toml as '{}'; make them equal",
                row.description, krate.description
            )),
            [] => complaints.push(format!(
                "{file}: add a row for {name}: | `{name}` | {} | `src/lib.rs` |",
                krate.description
            )),
            _ => complaints.push(format!("{file}: has {} rows for {name}; keep one", of_crate.len())),
        }
    }
    for row in &rows {
        let folder = format!("{}/{}", page.system, row.krate);
        if !crates.iter().any(|krate| krate.folder == folder) {
            complaints.push(format!("{file}: {folder} is not a crate of the workspace; remove its row"));
        } else if row.start.is_empty() || !root.join(&folder).join(row.start).is_file() {
            complaints.push(format!("{file}: {folder}/{} is not a file to start reading at", row.start));
        }
    }
    complaints
}

fn rows(page: &str) -> Vec<MapRow<'_>> {
    let table = page.lines().skip_while(|line| *line != HEADER).skip(2);
    table.take_while(|line| line.starts_with('|')).filter_map(row).collect()
}

fn row(line: &str) -> Option<MapRow<'_>> {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    match cells[..] {
        ["", krate, description, start, ""] => {
            Some(MapRow { krate: krate.trim_matches('`'), description, start: start.trim_matches('`') })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_crate(name: &str, description: &str) -> Crate {
        Crate {
            folder: format!("tools/{name}"),
            package: format!("tailwright-{name}"),
            description: description.to_owned(),
            ..Crate::default()
        }
    }

    /// Complaints about a page with these rows, for a workspace with `xtask` and `testkit`.
    fn complaints(rows: &str) -> Vec<String> {
        let text = format!("# tools\n\n| a | b | c |\n|---|---|---|\n\n{HEADER}\n|---|---|---|\n{rows}\n");
        let crates = [a_crate("xtask", "Runs"), a_crate("testkit", "Tests")];
        check(&crate::workspace::root(), &[SystemPage { system: "tools", text }], &crates)
    }

    const XTASK: &str = "| `xtask` | Runs | `src/main.rs` |\n";
    const TESTKIT: &str = "| `testkit` | Tests | `src/lib.rs` |\n";

    #[test]
    fn a_row_for_each_crate() {
        assert_eq!(complaints(&[XTASK, TESTKIT].concat()), [""; 0]);
    }

    #[test]
    fn folders_and_packages_are_called_alike() {
        let text = format!("{HEADER}\n|---|---|---|\n{XTASK}");
        let other = Crate { package: "toolbox".to_owned(), ..a_crate("xtask", "Runs") };
        let complaints = check(&crate::workspace::root(), &[SystemPage { system: "tools", text }], &[other]);
        assert!(complaints.len() == 1 && complaints[0].contains("called toolbox"), "{complaints:?}");
    }

    #[test]
    fn a_map_must_tell_the_truth() {
        for (rows, part) in [
            (XTASK.to_owned(), "add a row for testkit: | `testkit` | Tests |"),
            ([XTASK, XTASK, TESTKIT].concat(), "2 rows for xtask"),
            ([XTASK, TESTKIT, "| `x` | X | `src/lib.rs` |\n"].concat(), "tools/x is not a crate"),
            ([XTASK, "| `testkit` | Test | `src/lib.rs` |\n"].concat(), "'Test', its Cargo.toml as 'Tests'"),
            ([XTASK, "| `testkit` | Tests | `src/none.rs` |\n"].concat(), "none.rs is not a file"),
            ([XTASK, "| `testkit` | Tests | |\n"].concat(), "is not a file"),
        ] {
            let complaints = complaints(&rows);
            assert!(complaints.len() == 1 && complaints[0].contains(part), "{part}: {complaints:?}");
        }
        assert!(complaints("")[0].contains("expected a table"));
        assert!(complaints(&[XTASK, TESTKIT, &"\n".repeat(LINES_MAX)].concat())[0].contains("at most"));
    }
}
