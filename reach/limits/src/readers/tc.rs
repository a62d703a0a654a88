//! Classes and queueing disciplines of Linux traffic control: `tc class show` and `tc qdisc show`, as JSON and as text.
//!
//! `tc -j` of iproute2 6.1 prints classes of HTB as text all the same, so both are read. A class of HTB has its rate as
//! a reservation and its ceil as a ceiling. The root class states the capacity. The text does not name the device,
//! so the name of the file stands for it where `dev` is missing.

use super::parse::{head, number};
use crate::limit::{Direction, FoundLimit, LimitKind, LimitUnit, Origin, Resource, StatedCapacity};
use crate::survey::{KeyMeaning, SourceText, Survey};
use crate::tree;
use std::collections::BTreeMap;

pub(super) const NAME: &str = "tc";

pub(super) fn recognises(source: &SourceText) -> bool {
    let head = head(&source.text);
    let start = head.trim_start();
    if start.starts_with('[') {
        return head.contains("\"handle\"") && (head.contains("\"class\"") || head.contains("\"kind\""));
    }
    ["class ", "qdisc ", "tc class ", "tc qdisc "].iter().any(|word| start.starts_with(word))
}

/// A class or discipline with its values; rates in bytes per second, sizes in bytes.
#[derive(Debug, Default)]
struct ShapedClass {
    kind: String,
    handle: String,
    parent: Option<String>,
    device: Option<String>,
    priority: Option<u32>,
    values: BTreeMap<String, f64>,
    line: usize,
}

pub(super) fn read(sources: &[SourceText], survey: &mut Survey) {
    for source in sources {
        let classes = if source.text.trim_start().starts_with('[') {
            match of_json(&source.text) {
                Ok(classes) => classes,
                Err(reason) => {
                    survey.unreadable(&source.name, reason);
                    continue;
                }
            }
        } else {
            of_text(source, survey)
        };
        push(source, &classes, survey);
    }
}

/// Values that JSON and text have under the same names.
const VALUES: [&str; 5] = ["rate", "ceil", "burst", "cburst", "bandwidth"];

fn of_json(text: &str) -> Result<Vec<ShapedClass>, String> {
    let documents = tree::documents(text)?;
    let mut classes = Vec::new();
    for node in documents.iter().flat_map(tree::Node::items) {
        let word = |key: &str| node.text_at(&[key]).map(str::to_owned);
        let option = |key: &str| node.text_at(&["options", key]).or_else(|| node.text_at(&[key]));
        let values = VALUES.iter().filter_map(|key| Some(((*key).to_owned(), number(option(key)?)?)));
        classes.push(ShapedClass {
            kind: word("class").or_else(|| word("kind")).unwrap_or_default(),
            handle: word("handle").unwrap_or_default(),
            parent: word("parent"),
            device: word("dev"),
            priority: option("prio").and_then(|prio| prio.parse().ok()),
            values: values.collect(),
            line: node.line,
        });
    }
    Ok(classes)
}

fn of_text(source: &SourceText, survey: &mut Survey) -> Vec<ShapedClass> {
    let mut classes = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (kind, handle, rest) = match words[..] {
            ["class" | "qdisc", kind, handle, ref rest @ ..] => (kind, handle, rest),
            // A script that sets classes.
            ["tc", "class", "add" | "replace" | "change", ref rest @ ..] => {
                let id = rest.iter().position(|word| *word == "classid").and_then(|at| rest.get(at + 1));
                let is_htb = rest.contains(&"htb");
                (if is_htb { "htb" } else { "class of another kind" }, *id.unwrap_or(&""), rest)
            }
            _ => continue,
        };
        let after =
            |key: &str| rest.iter().position(|word| *word == key).and_then(|at| rest.get(at + 1)).copied();
        let mut class = ShapedClass {
            kind: kind.to_owned(),
            handle: handle.to_owned(),
            parent: after("parent").map(str::to_owned),
            device: after("dev").map(str::to_owned),
            priority: after("prio").and_then(|prio| prio.parse().ok()),
            line: index + 1,
            ..ShapedClass::default()
        };
        for key in VALUES {
            let Some(text) = after(key) else { continue };
            let parsed = if key.ends_with("burst") { size(text) } else { rate(text) };
            match parsed {
                Some(value) => {
                    class.values.insert(key.to_owned(), value);
                }
                None if text == "unlimited" => {}
                None => survey.unreadable(source.at(index + 1), format!("{key}: cannot read '{text}'")),
            }
        }
        classes.push(class);
    }
    classes
}

/// Parses a rate as tc prints and takes it, such as `30Mbit`, `1Kibit` or `5bps` (bytes), into bytes per second.
fn rate(text: &str) -> Option<f64> {
    if let Some(bytes) = text.strip_suffix("bps") {
        return scaled(bytes, 1000.0);
    }
    let bits = text.strip_suffix("bit")?;
    let (bits, step) = bits.strip_suffix('i').map_or((bits, 1000.0), |bits| (bits, 1024.0));
    Some(scaled(bits, step)? / 8.0)
}

/// Parses a size that tc printed, such as `64Kb`; its prefixes are powers of 1024.
fn size(text: &str) -> Option<f64> {
    scaled(text.split('/').next()?.strip_suffix('b')?, 1024.0)
}

fn scaled(text: &str, step: f64) -> Option<f64> {
    let power = ["K", "M", "G", "T"].iter().position(|prefix| text.ends_with(prefix));
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let power = power.map_or(0, |at| i32::try_from(at).unwrap_or(0) + 1);
    Some(number(digits)? * step.powi(power))
}

/// Disciplines that neither limit nor reserve.
const SILENT: [&str; 16] = [
    "noqueue",
    "fq_codel",
    "pfifo_fast",
    "pfifo",
    "bfifo",
    "mq",
    "fq",
    "codel",
    "sfq",
    "prio",
    "ingress",
    "clsact",
    "sch_prio",
    "multiq",
    "red",
    "netem",
];

fn push(source: &SourceText, classes: &[ShapedClass], survey: &mut Survey) {
    let stem = source.file_name().split('.').next().unwrap_or_default();
    for class in classes {
        let at = source.at(class.line);
        let place = class.device.clone().unwrap_or_else(|| stem.to_owned());
        let is_class =
            |handle: &String| classes.iter().any(|other| other.kind == "htb" && other.handle == *handle);
        match class.kind.as_str() {
            "htb" if class.values.contains_key("rate") => {
                let parent = class.parent.clone().filter(is_class);
                let is_parent = classes.iter().any(|other| other.parent.as_ref() == Some(&class.handle));
                push_htb(class, &place, parent.as_deref(), is_parent, &at, survey);
            }
            // The root discipline; its classes have the rates.
            "htb" => {}
            "tbf" | "cake" => {
                let rate = class.values.get("rate").or_else(|| class.values.get("bandwidth"));
                let Some(rate) = rate else { continue };
                let tenant = format!("{} {}", class.kind, class.handle);
                let mut limit =
                    meaning(LimitKind::Ceiling).limit(NAME, &class.kind, (&tenant, &place), *rate, at);
                limit.burst = class.values.get("burst").copied().or(Some(0.0));
                survey.push(limit);
            }
            kind if SILENT.contains(&kind) => {}
            kind => survey.unknown_key(NAME, kind, at),
        }
    }
}

const fn meaning(kind: LimitKind) -> KeyMeaning {
    KeyMeaning { resource: Resource::Network, direction: Direction::Out, kind, unit: LimitUnit::BytesPerS }
}

fn push_htb(
    class: &ShapedClass,
    place: &str,
    parent: Option<&str>,
    is_parent: bool,
    at: &Origin,
    survey: &mut Survey,
) {
    let value = |key: &str| class.values.get(key).copied();
    let Some(rate) = value("rate") else { return };
    if parent.is_none() && is_parent {
        let place = place.to_owned();
        let origin = at.clone();
        let direction = Direction::Out;
        let unit = LimitUnit::BytesPerS;
        let value = value("ceil").unwrap_or(rate);
        survey.push_capacity(StatedCapacity {
            place,
            resource: Resource::Network,
            direction,
            unit,
            value,
            origin,
        });
    }
    let tenant = format!("class {}", class.handle);
    let limit = |kind, value, burst, key: &str| FoundLimit {
        burst,
        priority: class.priority,
        within: parent.map(|handle| format!("class {handle}")),
        ..meaning(kind).limit(NAME, key, (&tenant, place), value, at.clone())
    };
    survey.push(limit(
        LimitKind::Ceiling,
        value("ceil").unwrap_or(rate),
        value("cburst").or(Some(0.0)),
        "htb ceil",
    ));
    survey.push(limit(LimitKind::Reservation, rate, value("burst"), "htb rate"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_that_tc_prints() {
        assert_eq!(rate("30Mbit"), Some(3.75e6));
        assert_eq!(rate("8Kibit"), Some(1024.0));
        assert_eq!(size("64Kb"), Some(65536.0));
        assert_eq!(size("1600b"), Some(1600.0));
        assert_eq!(size("x"), None);
    }
}
