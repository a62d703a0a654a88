//! What a page shows of the output of a command, held against what the command prints, and renewed from it.
//!
//! Shown lines are those that are printed, one below the other. A line `...` stands for any lines, `…` at the end of a
//! line for the rest of it. Empty lines and the widths of columns do not count, nor does a time at the end of a line,
//! because it is how long something took.

use std::collections::BTreeMap;
use std::iter::once;

/// Stands for any lines.
const ANY_LINES: &str = "...";
/// Lines that resemble each other less are not one line that has changed.
const LIKENESS_MIN: f64 = 0.35;

/// The first shown lines that were not printed where they stand; none where all were. No shown lines fit all output.
pub(crate) fn missing_lines(shown: &[&str], printed: &str) -> Option<String> {
    let printed: Vec<&str> = full_lines(printed.lines()).collect();
    let shown: Vec<&str> = full_lines(shown.iter().copied()).collect();
    let runs: Vec<&[&str]> = shown.split(|line| line.trim() == ANY_LINES).collect();
    let mut at = 0;
    for (index, run) in runs.iter().enumerate().filter(|(_, run)| !run.is_empty()) {
        let is_last = index + 1 == runs.len();
        let last = printed.len().checked_sub(run.len());
        let place = last.and_then(|last| {
            let from = if is_last { last.max(at) } else { at };
            let to = if index == 0 { 0 } else { last };
            (from..=to).find(|place| {
                let below = &printed[*place..place + run.len()];
                below.iter().zip(*run).all(|(printed, shown)| is_shown_as(printed, shown))
            })
        });
        match place {
            Some(place) => at = place + run.len(),
            None => return Some(run.join("\n")),
        }
    }
    None
}

fn full_lines<'a>(lines: impl Iterator<Item = &'a str>) -> impl Iterator<Item = &'a str> {
    lines.filter(|line| !line.trim().is_empty())
}

fn is_shown_as(printed: &str, shown: &str) -> bool {
    match shown.strip_suffix('…') {
        Some(beginning) => squeezed(printed).starts_with(squeezed(beginning).trim_end()),
        None => comparable(printed) == comparable(shown),
    }
}

/// A line whose columns are one space apart; what it is indented by stays.
fn squeezed(line: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    let words: Vec<&str> = line.split_whitespace().collect();
    format!("{}{}", &line[..indent], words.join(" "))
}

/// A line without the time at its end and without spaces that columns are aligned by.
fn comparable(line: &str) -> String {
    squeezed(without_time(line))
}

/// A line without the time at its end, if there is one, and without spaces there.
fn without_time(line: &str) -> &str {
    let line = line.trim_end();
    let (before, last) = line.rsplit_once(' ').unwrap_or(("", line));
    if is_time(last.trim_end_matches(['.', ';'])) { before.trim_end() } else { line }
}

fn is_time(word: &str) -> bool {
    let number = word.trim_end_matches(|c: char| c.is_ascii_lowercase());
    number.parse::<f64>().is_ok() && ["ns", "us", "ms", "s"].contains(&&word[number.len()..])
}

/// What to show in the place of `shown`: the printed lines that resemble those that were shown, in their order, with
/// `...` for those between. Lines that are still right stay as they are.
pub(crate) fn renewed(shown: &[&str], printed: &str) -> Vec<String> {
    let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
    let wanted: Vec<&str> = full_lines(shown.iter().copied()).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let places = places_by_likeness(&wanted, &printed);
    let mut lines = Vec::new();
    let mut next = 0;
    for (index, (line, place)) in wanted.iter().zip(&places).enumerate() {
        let Some(place) = *place else {
            if line.trim() == ANY_LINES && lines.last().is_none_or(|last| last != ANY_LINES) {
                lines.push(ANY_LINES.to_owned());
            }
            continue;
        };
        show_between(&mut lines, &printed[next..place]);
        lines.push(renewed_line(line, printed[place]));
        let limit = places[index + 1..].iter().flatten().next().copied().unwrap_or(printed.len());
        let is_new = !is_shown_as(printed[place], line);
        let rest = printed[place + 1..limit].iter().take_while(|piece| is_new && is_rest_of(line, piece));
        next = place + 1 + rest.clone().count();
        lines.extend(rest.map(|piece| (*piece).to_owned()));
    }
    show_between(&mut lines, &printed[next..]);
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// `...` for lines that are left out, and an empty line where there is one only.
fn show_between(lines: &mut Vec<String>, between: &[&str]) {
    let is_dots = lines.last().is_some_and(|last| last == ANY_LINES);
    if between.iter().any(|line| !line.is_empty()) && !is_dots {
        lines.push(ANY_LINES.to_owned());
    } else if !between.is_empty() && !is_dots && !lines.is_empty() {
        lines.push(String::new());
    }
}

fn renewed_line(shown: &str, printed: &str) -> String {
    let is_right = match shown.strip_suffix('…') {
        Some(_) => is_shown_as(printed, shown),
        None => without_time(printed) == without_time(shown),
    };
    match shown.strip_suffix('…') {
        _ if is_right => shown.to_owned(),
        Some(beginning) => {
            let count = beginning.split_whitespace().count();
            let end = printed
                .split_whitespace()
                .nth(count)
                .map(|next| next.as_ptr().addr() - printed.as_ptr().addr());
            format!("{} …", printed[..end.unwrap_or(printed.len())].trim_end())
        }
        None => printed.to_owned(),
    }
}

/// Whether a printed line is a further piece of a shown one, which was broken to a narrower width.
fn is_rest_of(shown: &str, piece: &str) -> bool {
    let words: Vec<&str> = shown.split_whitespace().collect();
    let of_it = piece.split_whitespace().filter(|word| words.contains(word)).count();
    piece.starts_with("  ") && of_it * 10 >= piece.split_whitespace().count() * 7
}

/// For each wanted line the index of the printed one that it has become, in ascending order; none for `...` and for lines
/// that nothing resembles. The sum of likenesses is the largest.
fn places_by_likeness(wanted: &[&str], printed: &[&str]) -> Vec<Option<usize>> {
    // best[w][p]: of the first w wanted and the first p printed lines.
    let mut best = vec![vec![0.0_f64; printed.len() + 1]; wanted.len() + 1];
    let likeness = |w: usize, p: usize| likeness(wanted[w], printed[p]);
    for w in 0..wanted.len() {
        for p in 0..printed.len() {
            best[w + 1][p + 1] = (best[w][p] + likeness(w, p)).max(best[w][p + 1]).max(best[w + 1][p]);
        }
    }
    let mut places = vec![None; wanted.len()];
    let mut w = wanted.len();
    let mut p = printed.len();
    while w > 0 && p > 0 {
        if best[w][p] <= best[w - 1][p] {
            w -= 1;
        } else if best[w][p] <= best[w][p - 1] {
            p -= 1;
        } else {
            (w, p) = (w - 1, p - 1);
            places[w] = Some(p);
        }
    }
    places
}

/// 0 for lines that have nothing to do with each other, 1 for equal ones.
fn likeness(wanted: &str, printed: &str) -> f64 {
    if wanted.trim() == ANY_LINES || printed.is_empty() {
        return 0.0;
    }
    if is_shown_as(printed, wanted) {
        return 1.0;
    }
    let shape = |line: &str| line.replace(|c: char| c.is_ascii_digit(), "0");
    let begins_alike = wanted.split_whitespace().next() == printed.split_whitespace().next();
    let alike = 0.4 * common_words(wanted, printed)
        + 0.3 * common_words(&shape(wanted), &shape(printed))
        + if begins_alike { 0.25 } else { 0.0 };
    if alike < LIKENESS_MIN { 0.0 } else { alike }
}

/// The share of words that two lines have in common (Dice's coefficient).
fn common_words(one: &str, other: &str) -> f64 {
    let mut counts: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    one.split_whitespace().for_each(|word| counts.entry(word).or_default().0 += 1);
    other.split_whitespace().for_each(|word| counts.entry(word).or_default().1 += 1);
    let common: u32 = counts.values().map(|(one, other)| one.min(other)).sum();
    let all: u32 = counts.values().map(|(one, other)| one + other).sum();
    f64::from(2 * common) / f64::from(all.max(1))
}

/// A page with other lines in some places: (index of the first line, how many lines, the new ones), ascending.
pub(crate) fn with_lines(page: &str, edits: &[(usize, usize, Vec<String>)]) -> String {
    let mut lines = page.lines().map(str::to_owned);
    let mut text = Vec::new();
    let mut at = 0;
    for (first, count, new) in edits {
        text.extend(lines.by_ref().take(first - at));
        text.extend(new.iter().cloned());
        lines.by_ref().take(*count).for_each(drop);
        at = first + count;
    }
    text.extend(lines.chain(once(String::new())));
    text.join("\n")
}
