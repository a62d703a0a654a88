//! Domains of libvirt: iotune of disks, blkiotune, cputune and bandwidth of interfaces.
//!
//! The tenant is the domain; a disk is named by its source, an interface by its target. A disk without a ceiling is
//! one tenant without a ceiling. Quotas of cputune are for each virtual processor.

use super::parse::{head, number};
use crate::limit::{Direction, LimitKind, LimitUnit, Origin, Resource};
use crate::survey::{KeyMeaning, SourceText, Survey, storage_ceiling, weight};
use crate::throttle::{SLICES_S, ThrottleBucket, buckets};
use roxmltree::{Document, Node, ParsingOptions};

pub(super) const NAME: &str = "libvirt";

/// Maximum number of elements and texts of a document.
const NODES_MAX: u32 = 1_000_000;
/// Bytes of a kilobyte in the bandwidth of an interface.
const KILOBYTE: f64 = 1024.0;

const IOTUNE: [(&str, Direction, LimitUnit); 6] = [
    ("total_bytes_sec", Direction::Total, LimitUnit::BytesPerS),
    ("read_bytes_sec", Direction::Read, LimitUnit::BytesPerS),
    ("write_bytes_sec", Direction::Write, LimitUnit::BytesPerS),
    ("total_iops_sec", Direction::Total, LimitUnit::RequestsPerS),
    ("read_iops_sec", Direction::Read, LimitUnit::RequestsPerS),
    ("write_iops_sec", Direction::Write, LimitUnit::RequestsPerS),
];

const BLKIOTUNE: [(&str, KeyMeaning); 5] = [
    ("weight", weight(Resource::Storage)),
    ("read_bytes_sec", storage_ceiling(Direction::Read, LimitUnit::BytesPerS)),
    ("write_bytes_sec", storage_ceiling(Direction::Write, LimitUnit::BytesPerS)),
    ("read_iops_sec", storage_ceiling(Direction::Read, LimitUnit::RequestsPerS)),
    ("write_iops_sec", storage_ceiling(Direction::Write, LimitUnit::RequestsPerS)),
];

/// Elements of these parents that limit nothing.
const SILENT: [&str; 6] = ["path", "group_name", "size_iops_sec", "period", "emulator_period", "vcpupin"];

pub(super) fn recognises(source: &SourceText) -> bool {
    let head = head(&source.text);
    head.trim_start().starts_with('<') && (head.contains("<domain") || head.contains("<domstatus"))
}

pub(super) fn read(sources: &[SourceText], survey: &mut Survey) {
    for source in sources {
        let options = ParsingOptions { nodes_limit: NODES_MAX, ..ParsingOptions::default() };
        let document = match Document::parse_with_options(&source.text, options) {
            Ok(document) => document,
            Err(error) => {
                survey.unreadable(&source.name, error);
                continue;
            }
        };
        for domain in document.descendants().filter(|node| node.has_tag_name("domain")) {
            DomainReader { source, document: &document, name: child_text(domain, "name"), survey }
                .read(domain);
        }
    }
}

fn child<'a, 'input>(node: Node<'a, 'input>, name: &str) -> Option<Node<'a, 'input>> {
    node.children().find(|child| child.has_tag_name(name))
}

fn child_text<'a>(node: Node<'a, '_>, name: &str) -> &'a str {
    child(node, name).and_then(|child| child.text()).unwrap_or_default().trim()
}

struct DomainReader<'a, 'input> {
    source: &'a SourceText,
    document: &'a Document<'input>,
    name: &'a str,
    survey: &'a mut Survey,
}

impl DomainReader<'_, '_> {
    fn at(&self, node: Node) -> Origin {
        let line = self.document.text_pos_at(node.range().start).row;
        self.source.at(usize::try_from(line).unwrap_or(0))
    }

    /// Returns the number in an element; counts anything else as unreadable.
    fn value(&mut self, node: Node) -> Option<f64> {
        let value = number(node.text().unwrap_or_default());
        if value.is_none() {
            let name = node.tag_name().name();
            self.survey.unreadable(self.at(node), format!("{name}: expected a number"));
        }
        value.filter(|value| *value > 0.0)
    }

    fn unknown(&mut self, parent: &str, node: Node) {
        let key = node.tag_name().name();
        if node.is_element() && !SILENT.contains(&key) {
            let at = self.at(node);
            self.survey.unknown_key(NAME, &format!("{parent}/{key}"), at);
        }
    }

    fn push(&mut self, meaning: KeyMeaning, key: &str, place: &str, bucket: ThrottleBucket, node: Node) {
        let mut limit = meaning.limit(NAME, key, (self.name, place), bucket.rate, self.at(node));
        limit.burst = (meaning.kind == LimitKind::Ceiling).then_some(bucket.burst);
        self.survey.push(limit);
    }

    fn read(&mut self, domain: Node) {
        for node in domain.children().filter(Node::is_element) {
            match node.tag_name().name() {
                "blkiotune" => self.blkiotune(node),
                "cputune" => self.cputune(node),
                "devices" => {
                    for device in node.children() {
                        match device.tag_name().name() {
                            "disk" => self.disk(device),
                            "interface" => self.interface(device),
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn blkiotune(&mut self, tune: Node) {
        for node in tune.children() {
            if node.has_tag_name("device") {
                let place = child_text(node, "path").to_owned();
                for key in node.children() {
                    self.tuned(key, &place);
                }
            } else {
                self.tuned(node, "all devices");
            }
        }
    }

    fn tuned(&mut self, node: Node, place: &str) {
        let name = node.tag_name().name();
        let Some((key, meaning)) = BLKIOTUNE.iter().find(|(key, _)| *key == name) else {
            self.unknown("blkiotune", node);
            return;
        };
        if let Some(rate) = self.value(node) {
            let burst = rate * SLICES_S;
            self.push(*meaning, &format!("blkiotune/{key}"), place, ThrottleBucket { rate, burst }, node);
        }
    }

    fn cputune(&mut self, tune: Node) {
        let period = number(child_text(tune, "period")).filter(|period| *period > 0.0).unwrap_or(1e5);
        for node in tune.children() {
            let kind = match node.tag_name().name() {
                "shares" => LimitKind::Weight,
                "quota" => LimitKind::Ceiling,
                // Other quotas are of the emulator and of I/O threads.
                _ => continue,
            };
            // A quota of -1 is no limit.
            let Some(value) = number(node.text().unwrap_or_default()).filter(|value| *value > 0.0) else {
                continue;
            };
            let unit = if kind == LimitKind::Weight { LimitUnit::Weight } else { LimitUnit::Cpus };
            let meaning = KeyMeaning { resource: Resource::Cpu, direction: Direction::Total, kind, unit };
            let rate = if kind == LimitKind::Weight { value } else { value / period };
            let key = format!("cputune/{}", node.tag_name().name());
            self.push(meaning, &key, "processors", ThrottleBucket { rate, burst: 2.0 * value / 1e6 }, node);
        }
    }

    fn disk(&mut self, disk: Node) {
        let target = child(disk, "target").and_then(|node| node.attribute("dev")).unwrap_or("disk");
        let source = child(disk, "source").and_then(|node| {
            ["dev", "file", "name", "volume"].iter().find_map(|attribute| node.attribute(*attribute))
        });
        let Some(place) = source.map(str::to_owned) else { return };
        let mut limits = 0;
        let tune = child(disk, "iotune");
        for node in tune.iter().flat_map(Node::children).filter(Node::is_element) {
            let name = node.tag_name().name();
            let base = name.strip_suffix("_max_length").or_else(|| name.strip_suffix("_max")).unwrap_or(name);
            let Some((key, direction, unit)) = IOTUNE.iter().find(|(key, ..)| *key == base) else {
                self.unknown("iotune", node);
                continue;
            };
            if base != name {
                continue;
            }
            let Some(average) = self.value(node) else { continue };
            let of_tune = |suffix: &str| number(child_text(tune?, &format!("{base}{suffix}")));
            for bucket in buckets(average, of_tune("_max"), of_tune("_max_length")) {
                limits += 1;
                let key = format!("{target} iotune/{key}");
                self.push(storage_ceiling(*direction, *unit), &key, &place, bucket, node);
            }
        }
        if limits == 0 {
            let at = self.at(disk);
            self.survey.push_unlimited(self.name, &place, at);
        }
    }

    fn interface(&mut self, interface: Node) {
        let Some(bandwidth) = child(interface, "bandwidth") else { return };
        let target = child(interface, "target").and_then(|node| node.attribute("dev"));
        let place = target.unwrap_or("interface").to_owned();
        // Inbound is to the domain; the host sees it go out.
        for (name, direction) in [("inbound", Direction::Out), ("outbound", Direction::In)] {
            let Some(node) = child(bandwidth, name) else { continue };
            let kilobytes =
                |attribute| node.attribute(attribute).and_then(number).map(|value| value * KILOBYTE);
            for (attribute, kind) in [("average", LimitKind::Ceiling), ("floor", LimitKind::Reservation)] {
                let Some(rate) = kilobytes(attribute) else { continue };
                let burst = kilobytes("burst").unwrap_or(rate);
                let unit = LimitUnit::BytesPerS;
                let meaning = KeyMeaning { resource: Resource::Network, direction, kind, unit };
                let key = format!("bandwidth/{name}/{attribute}");
                self.push(meaning, &key, &place, ThrottleBucket { rate, burst }, node);
            }
        }
    }
}
