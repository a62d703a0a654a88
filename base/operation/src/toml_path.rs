//! Paths of values in a TOML file: `run.load`, `station.web.workers`, `entry.*.arrivals`.
//!
//! A path is keys with dots between them. In a list, a key is the `name` of an element (without one, its `station`), its
//! position from 0, or `*` for all elements. In a table, `*` stands for all present keys, and the last key may be new:
//! the reader of the file decides whether it means anything.

use crate::text::meant_word;
use toml::Value;

/// Sets every value that `path` names, and returns their number.
///
/// # Errors
/// When no value matches: the first key without a match, and the keys that exist there.
pub fn set(root: &mut toml::Table, path: &str, value: &Value) -> Result<usize, String> {
    let keys: Vec<&str> = path.split('.').map(str::trim).collect();
    if keys.iter().any(|key| key.is_empty()) {
        return Err(format!("'{path}': expected a path such as run.load or station.web.workers"));
    }
    let mut places = 0;
    set_in_table(root, &keys, value, &mut places).map_err(|error| format!("'{path}': {error}"))?;
    Ok(places)
}

fn set_in_table(
    table: &mut toml::Table,
    keys: &[&str],
    value: &Value,
    places: &mut usize,
) -> Result<(), String> {
    match keys {
        [] => Ok(()),
        ["*", rest @ ..] => {
            table.iter_mut().try_for_each(|(_, below)| set_in_value(below, rest, value, places))
        }
        [key] => {
            table.insert((*key).to_owned(), value.clone());
            *places += 1;
            Ok(())
        }
        [key, rest @ ..] => match table.get_mut(*key) {
            Some(below) => set_in_value(below, rest, value, places),
            // A section that is left out, such as `run`, begins with its first value.
            None if rest.len() == 1 && rest[0] != "*" => {
                let mut section = toml::Table::new();
                set_in_table(&mut section, rest, value, places)?;
                table.insert((*key).to_owned(), Value::Table(section));
                Ok(())
            }
            None => {
                let meant = meant_word(key, table.keys().map(String::as_str));
                Err(format!("no '{key}' here; there are {}{meant}", joined(table.keys().cloned())))
            }
        },
    }
}

fn set_in_value(target: &mut Value, keys: &[&str], value: &Value, places: &mut usize) -> Result<(), String> {
    if keys.is_empty() {
        *target = value.clone();
        *places += 1;
        return Ok(());
    }
    match target {
        Value::Table(table) => set_in_table(table, keys, value, places),
        Value::Array(list) => set_in_list(list, keys, value, places),
        _ => Err(format!("'{}' would be inside of a single value", keys[0])),
    }
}

fn set_in_list(list: &mut [Value], keys: &[&str], value: &Value, places: &mut usize) -> Result<(), String> {
    let key = keys[0];
    let rest = &keys[1..];
    if key == "*" {
        return list.iter_mut().try_for_each(|element| set_in_value(element, rest, value, places));
    }
    let named = list.iter().position(|element| name(element) == Some(key));
    let index = named.or_else(|| key.parse().ok().filter(|index| *index < list.len()));
    match index {
        Some(index) => set_in_value(&mut list[index], rest, value, places),
        None => {
            let known = list.iter().enumerate();
            let known = known.map(|(index, element)| name(element).map_or(index.to_string(), str::to_owned));
            let known: Vec<String> = known.collect();
            let meant = meant_word(key, known.iter().map(String::as_str));
            if list.is_empty() {
                return Err(format!("no element '{key}' here: the list is empty"));
            }
            Err(format!("no element '{key}' here; there are {} and * for all{meant}", known.join(", ")))
        }
    }
}

/// The name of an element of a list, or its station where it has no name.
fn name(element: &Value) -> Option<&str> {
    let table = element.as_table()?;
    table.get("name").or_else(|| table.get("station"))?.as_str()
}

fn joined(all: impl Iterator<Item = String>) -> String {
    all.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "[run]\nload = 0.5\n[[station]]\nname = \"web\"\nworkers = 1\n\
        [[station]]\nname = \"db\"\nworkers = 2\n[[entry]]\nservice = { web = \"1ms\", db = \"2ms\" }\n";

    fn after(path: &str, value: &str) -> Result<(usize, toml::Table), String> {
        let mut table: toml::Table = FILE.parse().unwrap();
        let places = set(&mut table, path, &Value::String(value.to_owned()))?;
        Ok((places, table))
    }

    #[test]
    fn places_are_found_by_name_position_and_star() {
        let at = |path: &str| after(path, "x").unwrap();
        assert_eq!(at("run.load").1["run"]["load"].as_str(), Some("x"));
        assert_eq!(at("station.db.workers").1["station"][1]["workers"].as_str(), Some("x"));
        assert_eq!(at("station.1.workers").1["station"][1]["workers"].as_str(), Some("x"));
        let (places, table) = at("station.*.discipline");
        assert!(places == 2 && table["station"][0]["discipline"].as_str() == Some("x"));
        assert_eq!(at("entry.0.service.*").0, 2);
        assert_eq!(at("run.precision.of").1["run"]["precision"]["of"].as_str(), Some("x"));
    }

    #[test]
    fn places_that_do_not_exist_are_said() {
        for (path, part) in [
            ("station.app.workers", "web, db"),
            ("station.2.workers", "no element '2'"),
            ("run.load.x", "inside of a single value"),
            ("run..load", "expected a path"),
            ("stations.*.workers", "no 'stations' here; there are"),
        ] {
            let error = after(path, "x").unwrap_err();
            assert!(error.contains(part) && error.contains(path), "{path}: {error}");
        }
    }
}
