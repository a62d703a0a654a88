//! Quantities as text in sentences, such as the reason for a refusal.

use model::Stage;
use std::collections::BTreeSet;
use units::{ByteRate, Seconds};

/// Maximum length in bytes of a file name derived from another name; file systems allow 255, and suffixes
/// are appended.
const FILE_NAME_MAX: usize = 200;

/// Formats a time for people, such as `1.5ms`.
pub fn time(seconds: f64) -> String {
    Seconds(seconds).to_string()
}

/// An amount of money, to ten digits.
pub fn amount(amount: f64) -> String {
    if amount == 0.0 || !amount.is_finite() {
        return amount.to_string();
    }
    // Sums of decimal prices are off in the last of 17 digits.
    format!("{amount:.9e}").parse::<f64>().map_or_else(|_| amount.to_string(), |rounded| rounded.to_string())
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
    let meant = meant_word(name, known.iter().copied());
    format!("there is no workload '{name}': expected one of the table or cluster file: {first}{more}{meant}")
}

/// Returns the known word that is nearest to a mistyped one; `None` if none is near, or several are equally
/// near. A word that only lacks its end is near, too.
pub fn nearest_word<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = folded(given);
    // A third of the letters wrong is another word.
    let allowed = (given.len() / 3).max(1);
    let mut found: Option<(usize, &'a str)> = None;
    let mut is_ambiguous = false;
    for word in known {
        let letters = folded(word);
        let is_beginning = given.len() >= 3 && letters.starts_with(&given);
        let wrong = if is_beginning { 1 } else { typing_errors(&given, &letters) };
        if wrong > allowed || wrong >= letters.len().max(2) {
            continue;
        }
        match found {
            Some((least, _)) if least < wrong => {}
            Some((least, other)) if least == wrong => is_ambiguous |= other != word,
            _ => (found, is_ambiguous) = (Some((wrong, word)), false),
        }
    }
    found.filter(|_| !is_ambiguous).map(|(_, word)| word)
}

/// Returns ` (did you mean …?)` with the nearest word, to append to a message; empty if none is near.
pub fn meant_word<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest_word(given, known).map_or(String::new(), |word| format!(" (did you mean {word}?)"))
}

/// Returns the hint for a word that is not known: the nearest one, or all.
pub fn known_words(given: &str, known: &[&str]) -> String {
    match nearest_word(given, known.iter().copied()) {
        Some(word) if known.len() > 1 => format!("did you mean {word}? There are {}", known.join(", ")),
        _ => format!("there are {}", known.join(", ")),
    }
}

/// Letters without case, and `_` as `-`.
fn folded(word: &str) -> Vec<char> {
    word.to_lowercase().chars().map(|letter| if letter == '_' { '-' } else { letter }).collect()
}

/// Number of letters left out, added, changed or exchanged with the next one between two words.
fn typing_errors(a: &[char], b: &[char]) -> usize {
    let mut before = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let changed = above[j] + usize::from(x != y);
            let mut least = changed.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                let exchanged: &Vec<usize> = &before;
                least = least.min(exchanged[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
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

/// Formats the rate of a link, in bits if that is a round number; `None` unless it is positive and finite.
pub fn link_rate(bytes_per_s: f64) -> Option<String> {
    let bits = bytes_per_s * 8.0;
    for (unit, name) in [(1e9, "Gbps"), (1e6, "Mbps")] {
        if bits >= unit && (bits / unit).fract() == 0.0 {
            return Some(format!("{}{name}", bits / unit));
        }
    }
    Some(ByteRate::from_bytes_per_sec(bytes_per_s)?.to_string())
}

/// Derives the name of a host from that of a server or workload, limited to permitted characters.
pub fn host_of(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '-' }).take(200).collect();
    format!("host-of-{plain}")
}

/// Returns text for a comment in TOML, which ends with its line.
pub fn toml_comment(text: &str) -> String {
    text.replace(char::is_control, " ")
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
    fn the_nearest_word_is_named_or_none() {
        let verbs = ["plan", "explain", "experiment", "observe", "apply", "trace"];
        for (given, nearest) in [
            ("plna", Some("plan")),
            ("pla", Some("plan")),
            ("expalin", Some("explain")),
            ("exp", None),
            ("expe", Some("experiment")),
            ("PLAN", Some("plan")),
            ("obsrve", Some("observe")),
            ("tarce", Some("trace")),
            ("procedure", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest_word(given, verbs), nearest, "{given}");
        }
        assert_eq!(nearest_word("web-3", ["web-1", "web-2"]), None, "equally near");
        assert_eq!(nearest_word("by_slo", ["by-slo", "edf"]), Some("by-slo"));
        assert_eq!(known_words("fifi", &["fifo", "rr"]), "did you mean fifo? There are fifo, rr");
        assert_eq!(known_words("edf", &["fifo", "rr"]), "there are fifo, rr");
    }

    #[test]
    fn typing_errors_by_hand() {
        let letters = |word: &str| word.chars().collect::<Vec<_>>();
        for (a, b, expected) in [("c7", "c7", 0), ("mail", "mali", 1), ("", "abc", 3), ("web", "web-1", 2)] {
            assert_eq!(typing_errors(&letters(a), &letters(b)), expected, "{a} {b}");
        }
    }

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
