//! The code map of `ARCHITECTURE.md`: rows of a table, `` | `folder` | one line | must not know | start | ``.
//!
//! The third column is the rule table of `dependencies`: names of crates in backticks there are crates
//! that this one must not depend on, and the words "any other crate" forbid all.

use super::manifest::Crate;

/// What one crate must not know.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MapRule {
    /// Short name of the crate.
    pub(crate) of: String,
    pub(crate) forbidden: Forbidden,
}

/// Crates, by short name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Forbidden {
    All,
    These(Vec<String>),
}

struct MapRow<'a> {
    folder: &'a str,
    line: &'a str,
    must_not_know: &'a str,
    start: &'a str,
}

/// Each crate has one row, whose line is its description in `Cargo.toml`; each row has a crate.
pub(crate) fn check(map: &str, crates: &[Crate]) -> Vec<String> {
    let rows = rows(map);
    let mut complaints = Vec::new();
    for krate in crates {
        let of_crate: Vec<&MapRow> = rows.iter().filter(|row| row.folder == krate.folder).collect();
        match of_crate[..] {
            [row] if row.line == krate.description => {}
            [row] => complaints.push(format!(
                "ARCHITECTURE.md: the code map says '{}' of {}, Cargo.toml says '{}'; make them equal",
                row.line, krate.folder, krate.description
            )),
            _ => complaints.push(format!(
                "ARCHITECTURE.md: the code map has {} rows for {}; expected one",
                of_crate.len(),
                krate.folder
            )),
        }
    }
    for row in &rows {
        if !crates.iter().any(|krate| krate.folder == row.folder) {
            complaints.push(format!("ARCHITECTURE.md: the code map has {}, which is no crate", row.folder));
        }
        for file in ticked(row.start) {
            if !crate::workspace::root().join(row.folder).join(file).exists() {
                complaints.push(format!("ARCHITECTURE.md: {}/{file} does not exist", row.folder));
            }
        }
    }
    complaints
}

/// The rules that the code map states.
pub(crate) fn rules(map: &str) -> Vec<MapRule> {
    let rule = |row: MapRow| MapRule {
        of: row.folder.rsplit('/').next().unwrap_or(row.folder).to_owned(),
        forbidden: if row.must_not_know.contains("any other crate") {
            Forbidden::All
        } else {
            Forbidden::These(ticked(row.must_not_know).map(str::to_owned).collect())
        },
    };
    rows(map).into_iter().map(rule).collect()
}

fn rows(map: &str) -> Vec<MapRow<'_>> {
    let row = |line| {
        let cells: Vec<&str> = str::trim(line).split('|').map(str::trim).collect();
        match cells[..] {
            ["", folder, line, must_not_know, start, ""] => {
                let folder = folder.strip_prefix('`')?.strip_suffix('`')?;
                Some(MapRow { folder, line, must_not_know, start })
            }
            _ => None,
        }
    };
    map.lines().filter_map(row).collect()
}

/// What stands between backticks.
fn ticked(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = "| crate | one line | must not know | start |\n|---|---|---|---|\n\
        | `crates/x` | Does x | files, `y`, `z` | |\n| `crates/y` | Does y | any other crate | |\n";

    fn a_crate(name: &str, description: &str) -> Crate {
        Crate { folder: format!("crates/{name}"), description: description.to_owned(), ..Crate::default() }
    }

    #[test]
    fn rules_are_the_third_column() {
        let x =
            MapRule { of: "x".to_owned(), forbidden: Forbidden::These(vec!["y".to_owned(), "z".to_owned()]) };
        assert_eq!(rules(MAP), [x, MapRule { of: "y".to_owned(), forbidden: Forbidden::All }]);
    }

    #[test]
    fn a_map_must_tell_the_truth() {
        let both = [a_crate("x", "Does x"), a_crate("y", "Does y")];
        assert_eq!(check(MAP, &both), [""; 0]);
        for (crates, complaint) in [
            (vec![a_crate("x", "Does x")], "no crate"),
            (vec![a_crate("x", "Does x"), a_crate("y", "Does z")], "make them equal"),
            (vec![a_crate("x", "Does x"), a_crate("y", "Does y"), a_crate("w", "")], "0 rows"),
        ] {
            let complaints = check(MAP, &crates);
            assert!(complaints.len() == 1 && complaints[0].contains(complaint), "{complaints:?}");
        }
    }
}
