//! The code map of `ARCHITECTURE.md`: rows of a table, `` | `folder` | one line | must not know | start | ``.

use super::manifest::Crate;

struct MapRow<'a> {
    folder: &'a str,
    line: &'a str,
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

fn rows(map: &str) -> Vec<MapRow<'_>> {
    let row = |line| {
        let cells: Vec<&str> = str::trim(line).split('|').map(str::trim).collect();
        match cells[..] {
            ["", folder, line, _, start, ""] => {
                let folder = folder.strip_prefix('`')?.strip_suffix('`')?;
                Some(MapRow { folder, line, start })
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
