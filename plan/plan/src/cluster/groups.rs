//! Which workloads belong together: they may burst at the same time, and are admitted together or not at all.

use model::OperationError;
use operation::files::read_text;
use operation::text::unknown_workload;
use std::collections::BTreeMap;
use std::path::Path;

/// The group of each workload of `names`; workloads that the file does not mention are groups of their own.
/// Groups are numbered by their first workload.
///
/// The file is a table with the columns workload and group, or has one group per line (names separated by
/// commas or spaces), or is a JSON array of arrays of names or object of such arrays.
pub(crate) fn read_groups(path: &Path, names: &[&str]) -> Result<Vec<usize>, OperationError> {
    let text = read_text(path, "groups")?;
    let bad = |message: String| OperationError::input(format_args!("{}: {message}", path.display()));
    let groups = parse(&text).map_err(bad)?;
    number(&groups, names).map_err(bad)
}

fn parse(text: &str) -> Result<Vec<Vec<String>>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with(['[', '{']) {
        return json(text);
    }
    let mut lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let Some(first) = lines.next() else { return Ok(Vec::new()) };
    let header = cells(first);
    let (Some(workload), Some(group)) = (column(&header, "workload"), column(&header, "group")) else {
        return Ok(std::iter::once(header).chain(lines.map(cells)).collect());
    };
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in lines {
        let mut cells = cells(line);
        if cells.len() != header.len() {
            return Err(format!("expected {} cells as in the header, found '{line}'", header.len()));
        }
        groups.entry(cells[group].clone()).or_default().push(std::mem::take(&mut cells[workload]));
    }
    Ok(groups.into_values().collect())
}

/// The cells of a line. In quotes a cell may have any characters, and two quotes for one.
fn cells(line: &str) -> Vec<String> {
    let mut cells = Vec::new();
    let mut cell = String::new();
    let mut is_quoted = false;
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if is_quoted && characters.next_if_eq(&'"').is_some() => cell.push('"'),
            '"' => is_quoted = !is_quoted,
            ',' | ' ' | '\t' | '\r' | ';' if !is_quoted => cells.push(std::mem::take(&mut cell)),
            other => cell.push(other),
        }
    }
    cells.push(cell);
    cells.retain(|cell| !cell.is_empty());
    cells
}

/// A name as a cell of a table of groups.
pub fn group_cell(name: &str) -> String {
    if name.contains([',', ' ', '\t', ';', '"']) || name.starts_with('#') {
        return format!("\"{}\"", name.replace('"', "\"\""));
    }
    name.to_owned()
}

fn column(header: &[String], name: &str) -> Option<usize> {
    header.iter().position(|cell| cell.eq_ignore_ascii_case(name))
}

fn json(text: &str) -> Result<Vec<Vec<String>>, String> {
    let groups = if text.trim_start().starts_with('[') {
        serde_json::from_str(text)
    } else {
        serde_json::from_str(text).map(|named: BTreeMap<String, Vec<String>>| named.into_values().collect())
    };
    groups.map_err(|error| format!("expected groups as JSON arrays of names: {error}"))
}

/// The group of each name, numbered by their first names.
fn number(groups: &[Vec<String>], names: &[&str]) -> Result<Vec<usize>, String> {
    let mut group_of: Vec<Option<usize>> = vec![None; names.len()];
    for (group, members) in groups.iter().enumerate() {
        for member in members {
            let Some(workload) = names.iter().position(|name| name == member) else {
                return Err(unknown_workload(member, names));
            };
            if group_of[workload].is_some_and(|other| other != group) {
                return Err(format!("workload '{member}' is in two groups; expected one"));
            }
            group_of[workload] = Some(group);
        }
    }
    let mut numbers = BTreeMap::new();
    let mut next = 0;
    let mut numbered = Vec::new();
    for group in group_of {
        let number = match group {
            Some(group) => *numbers.entry(group).or_insert(next),
            None => next,
        };
        next += usize::from(number == next);
        numbered.push(number);
    }
    Ok(numbered)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

    #[test]
    fn all_forms_give_the_same_groups() {
        for text in [
            "workload,group\nb,web\nd,web\ne,db\nc,db\n",
            "# mine\nb, d\nc e\n",
            r#"[["d", "b"], ["e", "c"]]"#,
            r#"{"web": ["b", "d"], "db": ["c", "e"]}"#,
            "b,d\nc,e\na\n",
            "\"b\" , \"d\"\r\n\"c\";e\r\n",
        ] {
            let groups = parse(text).unwrap();
            assert_eq!(number(&groups, &NAMES).unwrap(), [0, 1, 2, 1, 2], "{text}");
        }
        assert_eq!(number(&parse("").unwrap(), &NAMES).unwrap(), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn any_name_is_a_cell() {
        for name in ["a", "a,b", "a b", "say \"a\"", "#1", "a;b\tc", "\"", "ü"] {
            assert_eq!(cells(&format!("{},1", group_cell(name))), [name, "1"], "{name}");
        }
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, what) in [
            ("x,y", "there is no workload 'x': expected one of"),
            ("a,b\nb,c", "workload 'b' is in two groups"),
            ("[1]", "expected groups as JSON"),
            ("workload,group\na", "expected 2 cells"),
        ] {
            let error = parse(text).and_then(|groups| number(&groups, &NAMES)).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}
