//! Quantities as text in sentences, such as the reason for a refusal.

use model::Stage;
use std::collections::BTreeSet;
use units::Seconds;

/// Maximum length in bytes of a file name derived from another name; file systems allow 255, and suffixes
/// are appended.
const FILE_NAME_MAX: usize = 200;

/// Formats a time for people, such as `1.5ms`.
pub fn time(seconds: f64) -> String {
    Seconds(seconds).to_string()
}

/// Formats a fraction as a percentage with three significant digits.
pub fn percent(fraction: f64) -> String {
    if fraction.is_nan() {
        return "–".to_owned();
    }
    if fraction.is_infinite() {
        return if fraction > 0.0 { "∞" } else { "-∞" }.to_owned();
    }
    let value = fraction * 100.0;
    let decimals = match value.abs() {
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}%")
}

/// Formats a utilisation as a percentage, or as `more than 10000 times` above that.
pub fn overload(utilisation: f64) -> String {
    const MEASURED_MAX: f64 = 1e4;
    if utilisation < MEASURED_MAX {
        return format!("{:.1} %", 100.0 * utilisation);
    }
    format!("more than {MEASURED_MAX:.0} times")
}

/// Says that no workload has this name, and lists the known ones.
pub fn unknown_workload(name: &str, known: &[&str]) -> String {
    const SHOWN: usize = 5;
    let first = known.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    let more = if known.len() > SHOWN { format!(", … ({} in all)", known.len()) } else { String::new() };
    format!("there is no workload '{name}': expected one of the table or cluster file: {first}{more}")
}

/// Formats fractions by stage: `network-in 4.81%, storage 7.97%`.
pub fn by_stage(fractions: impl Iterator<Item = (Stage, f64)>) -> String {
    let all: Vec<String> =
        fractions.map(|(stage, fraction)| format!("{stage} {}", percent(fraction))).collect();
    all.join(", ")
}

/// Replaces all characters except ASCII letters, digits, `-`, `_` and `.` by `_`. A name that is empty or
/// begins with a dot gets a leading `_`.
pub(crate) fn plain_file_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let mut plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    plain.truncate(FILE_NAME_MAX);
    if plain.is_empty() || plain.starts_with('.') {
        plain.insert(0, '_');
    }
    plain
}

/// As `plain_file_name`, with further underscores if the name is taken. Marks the result as taken.
pub fn free_file_name(name: &str, taken: &mut BTreeSet<String>) -> String {
    let mut free = plain_file_name(name);
    while !taken.insert(free.clone()) {
        free.push('_');
    }
    free
}

/// Quotes text as a TOML string.
pub fn toml_string(text: &str) -> String {
    // A JSON string is a TOML string, except that TOML requires DEL to be escaped.
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_three_digits_or_are_no_numbers() {
        let shown = [0.5, 0.099, 0.001, f64::INFINITY, f64::NAN].map(percent);
        assert_eq!(shown, ["50.0%", "9.90%", "0.100%", "∞", "–"]);
    }

    #[test]
    fn names_become_toml_and_file_names_whatever_they_are() {
        for (name, file) in [
            ("mail", "mail"),
            ("a \"b\" \\ c", "a__b____c"),
            ("(unknown)", "_unknown_"),
            ("new\nline", "new_line"),
            ("\u{7f}", "_"),
            ("..", "_.."),
            ("", "_"),
            ("fd00::2", "fd00__2"),
        ] {
            let text = format!("x = {}", toml_string(name));
            let table: toml::Table = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(table["x"].as_str(), Some(name));
            assert_eq!(plain_file_name(name), file);
        }
    }

    #[test]
    fn file_names_are_neither_too_long_nor_the_same() {
        let mut taken = BTreeSet::new();
        let mut free = |name: &str| free_file_name(name, &mut taken);
        assert_eq!((free("a/b"), free("a b"), free("a_b_")), ("a_b".into(), "a_b_".into(), "a_b__".into()));
        let long = "ü".repeat(300);
        assert!(free(&long).len() < 255 - ".parquet".len() && free(&long) != free(&long));
    }
}
