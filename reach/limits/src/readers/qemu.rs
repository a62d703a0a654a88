//! Command lines of QEMU: `throttling.*` of drives, throttle groups and throttle nodes.
//!
//! The text is one command line with zero bytes between its arguments, as in /proc, or lines as `ps` and scripts have
//! them. The tenant is the name of the guest. Drives of one group share its limits, so a group is one tenant.

use super::parse::{head, number};
use crate::limit::{Direction, LimitUnit};
use crate::survey::{SourceText, Survey, storage_ceiling};
use crate::throttle::buckets;
use crate::tree::{self, Node};
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

pub(super) const NAME: &str = "qemu";

/// Ends of keys, after `throttling.`, `x-`, `limits.` or nothing.
const KEYS: [(&str, Direction, LimitUnit); 6] = [
    ("bps-total", Direction::Total, LimitUnit::BytesPerS),
    ("bps-read", Direction::Read, LimitUnit::BytesPerS),
    ("bps-write", Direction::Write, LimitUnit::BytesPerS),
    ("iops-total", Direction::Total, LimitUnit::RequestsPerS),
    ("iops-read", Direction::Read, LimitUnit::RequestsPerS),
    ("iops-write", Direction::Write, LimitUnit::RequestsPerS),
];

/// Names of the same keys in options of old versions, which `-drive` still takes.
const OLD_NAMES: [(&str, &str); 6] = [
    ("bps", "bps-total"),
    ("bps_rd", "bps-read"),
    ("bps_wr", "bps-write"),
    ("iops", "iops-total"),
    ("iops_rd", "iops-read"),
    ("iops_wr", "iops-write"),
];

/// Maximum depth of nodes below a throttle node.
const CHAIN_MAX: usize = 16;

pub(super) fn recognises(source: &SourceText) -> bool {
    let head = head(&source.text);
    let has_option = ["-drive", "-blockdev", "throttle-group", "-display", "-machine", "-name"]
        .iter()
        .any(|o| head.contains(o));
    (head.contains("qemu") || head.contains("kvm"))
        && has_option
        && !head.trim_start().starts_with(['<', '['])
}

pub(super) fn read(sources: &[SourceText], survey: &mut Survey) {
    for source in sources {
        if source.text.contains('\0') {
            let words = source.text.split('\0').map(str::to_owned).collect();
            CommandLine::new(source, 1, words).read(survey);
            continue;
        }
        for (line, words) in commands(&source.text) {
            if words.iter().any(|word| word.contains("qemu") || word.contains("kvm")) {
                CommandLine::new(source, line, words).read(survey);
            }
        }
    }
}

/// Splits a text into commands as a shell does: quotes, and lines that a backslash continues.
fn commands(text: &str) -> Vec<(usize, Vec<String>)> {
    let mut commands = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut begun = 1;
    let mut line = 1;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        line += usize::from(letter == '\n');
        match (quote, letter) {
            (None, '\\') if letters.peek() == Some(&'\n') => {
                letters.next();
                line += 1;
                words.extend(word.take());
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(letters.next()),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (Some(open), _) if open == letter => quote = None,
            (None, '\n') => {
                words.extend(word.take());
                if !words.is_empty() {
                    commands.push((begun, std::mem::take(&mut words)));
                }
                begun = line;
            }
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            // `ps` prints the JSON of -blockdev without quotes around it, so those inside are its own.
            (None, '{') if word.is_none() => {
                word = Some(balanced(&mut letters));
            }
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    if !words.is_empty() {
        commands.push((begun, words));
    }
    commands
}

/// Returns a text in braces as it is, after the opening one.
fn balanced(letters: &mut Peekable<Chars>) -> String {
    let mut text = "{".to_owned();
    let mut depth = 1;
    while depth > 0
        && let Some(letter) = letters.next_if(|letter| *letter != '\n')
    {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        text.push(letter);
    }
    text
}

/// Splits `key=value,key=value`; two commas stand for one in a value.
fn options(text: &str) -> Vec<(String, String)> {
    if text.trim_start().starts_with('{') {
        let documents = tree::documents(text).unwrap_or_default();
        let mut flat = Vec::new();
        documents.iter().for_each(|node| flatten(node, "", 0, &mut flat));
        return flat;
    }
    let escaped = text.replace(",,", "\u{1}");
    let pairs = escaped.split(',').map(|option| option.split_once('=').unwrap_or(("", option)));
    pairs.map(|(key, value)| (key.to_owned(), value.replace('\u{1}', ","))).collect()
}

/// Turns the fields of a JSON object into keys with dots, as QEMU's own options have them.
fn flatten(node: &Node, prefix: &str, depth: usize, flat: &mut Vec<(String, String)>) {
    for (key, value) in node.fields() {
        let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value.text() {
            Some(text) => flat.push((key, text.to_owned())),
            None if depth < CHAIN_MAX => flatten(value, &key, depth + 1, flat),
            None => {}
        }
    }
}

fn value_of<'a>(options: &'a [(String, String)], key: &str) -> Option<&'a str> {
    options.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
}

struct CommandLine<'a> {
    source: &'a SourceText,
    line: usize,
    /// Options with a value, in order.
    arguments: Vec<(String, Vec<(String, String)>)>,
}

impl<'a> CommandLine<'a> {
    fn new(source: &'a SourceText, line: usize, words: Vec<String>) -> Self {
        let mut arguments = Vec::new();
        let mut words = words.into_iter().peekable();
        while let Some(word) = words.next() {
            let name = word.trim_start_matches('-');
            if word.starts_with('-')
                && ["drive", "blockdev", "object", "name"].contains(&name)
                && let Some(value) = words.next()
            {
                arguments.push((name.to_owned(), options(&value)));
            }
        }
        Self { source, line, arguments }
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &Vec<(String, String)>> {
        self.arguments.iter().filter(move |(known, _)| known == name).map(|(_, options)| options)
    }

    fn guest(&self) -> String {
        let named = self.all("name").find_map(|options| {
            value_of(options, "guest").or_else(|| value_of(options, "")).map(str::to_owned)
        });
        named.unwrap_or_else(|| self.source.name.clone())
    }

    /// Returns the file at the end of the chain of nodes that begins with these options.
    fn file(&self, options: &[(String, String)]) -> Option<String> {
        let mut options = options.to_vec();
        for _ in 0..CHAIN_MAX {
            let is_file = |key: &str| {
                key == "filename" || key == "device" || key.ends_with(".filename") || key == "image"
            };
            if let Some((_, file)) = options.iter().find(|(key, _)| is_file(key)) {
                return Some(file.clone());
            }
            let below = value_of(&options, "file")?;
            let Some(next) = self.all("blockdev").find(|other| value_of(other, "node-name") == Some(below))
            else {
                return Some(below.to_owned());
            };
            options.clone_from(next);
        }
        None
    }

    fn read(&self, survey: &mut Survey) {
        let guest = self.guest();
        let mut groups: BTreeMap<&str, String> = BTreeMap::new();
        let mut drives = 0;
        for options in self.all("blockdev") {
            if let Some(group) = value_of(options, "throttle-group") {
                let place = self.file(options).or_else(|| value_of(options, "node-name").map(str::to_owned));
                groups.entry(group).or_insert_with(|| place.unwrap_or_else(|| group.to_owned()));
                drives += 1;
            }
        }
        for options in self.all("drive") {
            drives += 1;
            let place = self.file(options).or_else(|| value_of(options, "id").map(str::to_owned));
            let place = place.unwrap_or_else(|| "drive".to_owned());
            let group = value_of(options, "throttling.group");
            let in_known_group = group.is_some_and(|group| groups.contains_key(group));
            if let Some(group) = group {
                groups.entry(group).or_insert_with(|| place.clone());
            }
            let count = self.push(options, "-drive", &guest, &place, survey);
            if count == 0 && !in_known_group {
                survey.push_unlimited(&guest, &place, self.source.at(self.line));
            }
        }
        for options in self.all("object") {
            let is_group =
                value_of(options, "qom-type").or_else(|| value_of(options, "")) == Some("throttle-group");
            let id = value_of(options, "id").unwrap_or("group");
            if is_group {
                let place = groups.get(id).cloned().unwrap_or_else(|| id.to_owned());
                self.push(options, &format!("throttle-group {id}"), &guest, &place, survey);
            }
        }
        let nodes: Vec<_> = self.all("blockdev").collect();
        if drives == 0 && !nodes.is_empty() {
            let place = self.file(nodes[nodes.len() - 1]).unwrap_or_else(|| "block device".to_owned());
            survey.push_unlimited(&guest, &place, self.source.at(self.line));
        }
    }

    /// Records the limits among these options; returns their number.
    fn push(
        &self,
        options: &[(String, String)],
        what: &str,
        guest: &str,
        place: &str,
        survey: &mut Survey,
    ) -> usize {
        let mut values: BTreeMap<String, f64> = BTreeMap::new();
        for (key, value) in options {
            let bare = ["throttling.", "x-", "limits."].iter().find_map(|prefix| key.strip_prefix(prefix));
            let Some(name) = bare.map(str::to_owned).or_else(|| modern_name(key)) else { continue };
            let base = name.trim_end_matches("-length").trim_end_matches("-max");
            let is_known = KEYS.iter().any(|(known, ..)| *known == base);
            if !is_known {
                if name != "group" && name != "iops-size" {
                    survey.unknown_key(NAME, key, self.source.at(self.line));
                }
                continue;
            }
            match number(value) {
                Some(value) => {
                    values.insert(name, value);
                }
                None => survey.unreadable(
                    self.source.at(self.line),
                    format!("{key}: expected a number, found '{value}'"),
                ),
            }
        }
        let mut count = 0;
        for (key, direction, unit) in KEYS {
            let Some(average) = values.get(key).filter(|value| **value > 0.0) else { continue };
            let part = |suffix: &str| values.get(&format!("{key}{suffix}")).copied();
            for bucket in buckets(*average, part("-max"), part("-max-length")) {
                let meaning = storage_ceiling(direction, unit);
                let at = self.source.at(self.line);
                let mut limit =
                    meaning.limit(NAME, &format!("{what} {key}"), (guest, place), bucket.rate, at);
                limit.burst = Some(bucket.burst);
                survey.push(limit);
                count += 1;
            }
        }
        count
    }
}

/// Returns the present name of an option of old versions.
fn modern_name(key: &str) -> Option<String> {
    let (base, suffix) = key.strip_suffix("_max").map_or((key, ""), |base| (base, "-max"));
    let (_, name) = OLD_NAMES.iter().find(|(old, _)| *old == base)?;
    Some(format!("{name}{suffix}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survey(text: &str) -> Survey {
        let mut survey = Survey::default();
        read(&[SourceText::new("/proc/7/cmdline", text)], &mut survey);
        survey
    }

    #[test]
    fn quotes_and_continued_lines_are_those_of_a_shell() {
        let text = "qemu -name 'a b' \\\n  -drive \"file=x\"\nother\n";
        let found = commands(text);
        assert_eq!(found[0], (1, ["qemu", "-name", "a b", "-drive", "file=x"].map(str::to_owned).to_vec()));
        assert_eq!(found[1].0, 3);
    }

    #[test]
    fn a_group_is_at_the_file_of_its_node() {
        let found = survey(concat!(
            "qemu-system-x86_64\0-name\0guest=db,debug-threads=on\0",
            "-object\0{\"qom-type\":\"throttle-group\",\"id\":\"g\",\"limits\":{\"iops-total\":5}}\0",
            "-blockdev\0driver=file,node-name=f,filename=/x,,y.img\0",
            "-blockdev\0{\"driver\":\"throttle\",\"node-name\":\"t\",\"throttle-group\":\"g\",\"file\":\"f\"}\0",
        ));
        let rows: Vec<_> =
            found.limits.iter().map(|l| (l.tenant.as_str(), l.place.as_str(), l.value)).collect();
        assert_eq!(rows, [("db", "/x,y.img", 5.0)]);
        assert!(found.unlimited.is_empty());
    }

    #[test]
    fn a_drive_without_limits_is_unlimited() {
        let found = survey("qemu-system-x86_64 -name web -drive file=web.img,throttling.new-key=3\n");
        assert_eq!(found.unlimited.iter().next().map(|at| at.place.as_str()), Some("web.img"));
        assert_eq!(found.unknown_keys()[0].key, "throttling.new-key");
    }
}
