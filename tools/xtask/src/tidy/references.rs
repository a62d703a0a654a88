//! `REFERENCES.md` against the code. A source is a section with a line such as
//! `` Cited as `Veitch and Abry` in `base/trace`. ``
//! The first name in backticks is the form in which code cites it, the others are the crates that do.
//!
//! A crate that cites is listed, and a listed crate cites. Case is ignored.

use crate::workspace::RustFile;

const LEAD: &str = "Cited as ";

struct Citation<'a> {
    title: &'a str,
    key: String,
    places: Vec<&'a str>,
}

/// Each section names its citation form and the places which use it, and no other place does.
pub(crate) fn check(references: &str, sources: &[RustFile]) -> Vec<String> {
    let mut complaints = Vec::new();
    for section in references.split("\n## ").skip(1) {
        match entry(section) {
            Some(entry) => complaints.extend(check_entry(&entry, sources)),
            None => complaints.push(format!(
                "REFERENCES.md: '{}' has no line: Cited as `form` in `file`, …",
                section.lines().next().unwrap_or_default()
            )),
        }
    }
    complaints
}

fn entry(section: &str) -> Option<Citation<'_>> {
    let title = section.lines().next()?;
    // The list ends with its paragraph.
    let cited = section.split_once(LEAD)?.1.split("\n\n").next()?;
    let mut ticked = cited.split('`').skip(1).step_by(2);
    let key = ticked.next()?.to_lowercase();
    let places: Vec<&str> = ticked.collect();
    if places.is_empty() { None } else { Some(Citation { title, key, places }) }
}

fn check_entry(entry: &Citation, sources: &[RustFile]) -> Vec<String> {
    // Examples in this program's tests cite nothing.
    let cites = |source: &&RustFile| {
        !source.path.starts_with("tools/xtask/") && names(&one_line(&source.text), &entry.key)
    };
    let mut citing: Vec<(&str, &str)> =
        sources.iter().filter(cites).map(|source| (krate(&source.path), source.path.as_str())).collect();
    // One complaint for each crate, with its first file.
    citing.sort_unstable();
    citing.dedup_by_key(|(krate, _)| *krate);
    let mut complaints = Vec::new();
    for place in &entry.places {
        if !citing.iter().any(|(krate, _)| krate == place) {
            complaints.push(format!(
                "REFERENCES.md: '{}': nothing in {place} says '{}'; correct the crate or the citation",
                entry.title, entry.key
            ));
        }
    }
    for (krate, path) in citing {
        if !entry.places.contains(&krate) {
            complaints.push(format!(
                "{path}: cites '{}'; add `{krate}` to '{}' in REFERENCES.md",
                entry.key, entry.title
            ));
        }
    }
    complaints
}

/// The folder of the crate that a file is in.
fn krate(path: &str) -> &str {
    path.match_indices('/').nth(1).map_or(path, |(end, _)| &path[..end])
}

/// True if the text has the key as words, not as a part of a longer one.
fn names(text: &str, key: &str) -> bool {
    text.match_indices(key).any(|(at, _)| {
        !text[..at].ends_with(char::is_alphanumeric)
            && !text[at + key.len()..].starts_with(char::is_alphanumeric)
    })
}

/// Comments without their line breaks, in lower case, so that a citation may wrap.
fn one_line(text: &str) -> String {
    let bare = |line| str::trim(line).trim_start_matches(['/', '!']).trim().to_lowercase();
    text.lines().map(bare).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFERENCES: &str =
        "# References\n\n## A book\nText.\nCited as `A and B` in `base/x`.\n\nMore `text`.\n";

    fn source(path: &str, text: &str) -> RustFile {
        RustFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn citations_and_places_agree() {
        let citing = source("base/x/src/lib.rs", "//! As A\n//! and B say.");
        assert_eq!(check(REFERENCES, &[citing]), [""; 0]);
        let silent = source("base/x/src/lib.rs", "//! As C says.");
        assert!(check(REFERENCES, &[silent])[0].contains("nothing in base/x"));
        let inside = source("base/x/src/lib.rs", "//! As Beta and B say.");
        assert!(check(REFERENCES, &[inside])[0].contains("nothing in base/x"));
        let all = [
            source("base/x/a.rs", "// A and B"),
            source("base/xy/a.rs", "// a and b"),
            source("base/xy/b.rs", "// a and b"),
        ];
        let complaints = check(REFERENCES, &all);
        assert!(complaints.len() == 1 && complaints[0].contains("add `base/xy`"), "{complaints:?}");
        assert!(check("\n## A book\nText.\n", &[])[0].contains("A book"));
    }
}
