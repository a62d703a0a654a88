//! Kubernetes: parameters of StorageClass and VolumeAttributesClass, and the claims that use them, as
//! `kubectl get -o yaml` or `-o json` prints them.
//!
//! The tenant is the claim; its limits are those of its attributes class, or else of its storage class, scaled with
//! its size where a driver does so. A class without claims is shown as a class. Keys are a table by driver.

use super::parse::{head, number};
use crate::limit::{Direction, LimitUnit, Origin};
use crate::survey::{SourceText, Survey, storage_ceiling};
use crate::tree::{self, Node};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const NAME: &str = "kubernetes";

const GIB: f64 = 1_073_741_824.0;
const MIB: f64 = 1_048_576.0;

/// Keys of drivers: driver, key, direction, unit, and factor to base units. A driver is known by the end of its name.
const KEYS: [(&str, &str, Direction, LimitUnit, f64); 22] = [
    ("rbd.csi.ceph.com", "baseIops", Direction::Total, LimitUnit::RequestsPerS, 1.0),
    ("rbd.csi.ceph.com", "baseReadIops", Direction::Read, LimitUnit::RequestsPerS, 1.0),
    ("rbd.csi.ceph.com", "baseWriteIops", Direction::Write, LimitUnit::RequestsPerS, 1.0),
    ("rbd.csi.ceph.com", "baseBps", Direction::Total, LimitUnit::BytesPerS, 1.0),
    ("rbd.csi.ceph.com", "baseReadBps", Direction::Read, LimitUnit::BytesPerS, 1.0),
    ("rbd.csi.ceph.com", "baseWriteBps", Direction::Write, LimitUnit::BytesPerS, 1.0),
    ("ebs.csi.aws.com", "iops", Direction::Total, LimitUnit::RequestsPerS, 1.0),
    ("ebs.csi.aws.com", "throughput", Direction::Total, LimitUnit::BytesPerS, MIB),
    ("pd.csi.storage.gke.io", "iops", Direction::Total, LimitUnit::RequestsPerS, 1.0),
    ("pd.csi.storage.gke.io", "throughput", Direction::Total, LimitUnit::BytesPerS, MIB),
    ("pd.csi.storage.gke.io", "provisioned-iops-on-create", Direction::Total, LimitUnit::RequestsPerS, 1.0),
    (
        "pd.csi.storage.gke.io",
        "provisioned-throughput-on-create",
        Direction::Total,
        LimitUnit::BytesPerS,
        1.0,
    ),
    ("disk.csi.azure.com", "DiskIOPSReadWrite", Direction::Total, LimitUnit::RequestsPerS, 1.0),
    ("disk.csi.azure.com", "DiskMBpsReadWrite", Direction::Total, LimitUnit::BytesPerS, 1e6),
    ("linstor.csi.linbit.com", "sys/fs/blkio_throttle_read", Direction::Read, LimitUnit::BytesPerS, 1.0),
    ("linstor.csi.linbit.com", "sys/fs/blkio_throttle_write", Direction::Write, LimitUnit::BytesPerS, 1.0),
    (
        "linstor.csi.linbit.com",
        "sys/fs/blkio_throttle_read_iops",
        Direction::Read,
        LimitUnit::RequestsPerS,
        1.0,
    ),
    (
        "linstor.csi.linbit.com",
        "sys/fs/blkio_throttle_write_iops",
        Direction::Write,
        LimitUnit::RequestsPerS,
        1.0,
    ),
    ("diskplugin.csi.alibabacloud.com", "readIOPS", Direction::Read, LimitUnit::RequestsPerS, 1.0),
    ("diskplugin.csi.alibabacloud.com", "writeIOPS", Direction::Write, LimitUnit::RequestsPerS, 1.0),
    ("diskplugin.csi.alibabacloud.com", "readBPS", Direction::Read, LimitUnit::BytesPerS, 1.0),
    ("diskplugin.csi.alibabacloud.com", "writeBPS", Direction::Write, LimitUnit::BytesPerS, 1.0),
];

/// Driver whose limits grow with the volume, and whose `max…` keys alone are limits of the control group.
const CEPH: &str = "rbd.csi.ceph.com";
/// Prefix of properties of LINSTOR in parameters.
const LINSTOR_PREFIX: &str = "property.linstor.csi.linbit.com/";

/// Words in keys of parameters that seem to limit.
const SUSPECT: [&str; 6] = ["iops", "bps", "throughput", "bandwidth", "qos", "throttle"];

pub(super) fn recognises(source: &SourceText) -> bool {
    head(&source.text).contains("apiVersion")
}

/// A StorageClass or VolumeAttributesClass.
struct VolumeClass<'a> {
    kind: &'static str,
    driver: &'a str,
    parameters: &'a [(String, Node)],
    origin: Origin,
}

/// A PersistentVolumeClaim.
struct Claim<'a> {
    name: String,
    storage_class: Option<&'a str>,
    attributes_class: Option<&'a str>,
    size_bytes: Option<f64>,
    origin: Origin,
}

pub(super) fn read(sources: &[SourceText], survey: &mut Survey) {
    let mut documents = Vec::new();
    for source in sources {
        match tree::documents(&source.text) {
            Ok(read) => documents.push((source, read)),
            Err(reason) => survey.unreadable(&source.name, reason),
        }
    }
    let mut storage: BTreeMap<&str, VolumeClass> = BTreeMap::new();
    let mut attributes: BTreeMap<&str, VolumeClass> = BTreeMap::new();
    let mut claims = Vec::new();
    for (source, documents) in &documents {
        for object in objects(documents) {
            let name = object.text_at(&["metadata", "name"]).unwrap_or("unnamed");
            let class = |kind, driver: &'static str| VolumeClass {
                kind,
                driver: object.text_at(&[driver]).unwrap_or_default(),
                parameters: object.get("parameters").map_or(&[][..], Node::fields),
                origin: source.at(object.line),
            };
            match object.text_at(&["kind"]) {
                Some("StorageClass") => {
                    storage.insert(name, class("StorageClass", "provisioner"));
                }
                Some("VolumeAttributesClass") => {
                    attributes.insert(name, class("VolumeAttributesClass", "driverName"));
                }
                Some("PersistentVolumeClaim") => claims.push(claim(source, object, name)),
                _ => {}
            }
        }
    }
    let used_storage: BTreeSet<&str> = claims.iter().filter_map(|claim| claim.storage_class).collect();
    let used_attributes: BTreeSet<&str> = claims.iter().filter_map(|claim| claim.attributes_class).collect();
    for (name, class) in &storage {
        if !used_storage.contains(name) {
            push(class, class, &format!("StorageClass {name}"), None, survey);
        }
    }
    for (name, class) in &attributes {
        if !used_attributes.contains(name) {
            push(class, class, &format!("VolumeAttributesClass {name}"), None, survey);
        }
    }
    for claim in &claims {
        let of_storage = claim.storage_class.and_then(|name| storage.get(name));
        let of_attributes = claim.attributes_class.and_then(|name| attributes.get(name));
        let Some(class) = of_attributes.or(of_storage) else {
            survey.push_unlimited(
                &claim.name,
                claim.storage_class.unwrap_or("default class"),
                claim.origin.clone(),
            );
            continue;
        };
        let placing = of_storage.unwrap_or(class);
        let count = push(class, placing, &claim.name, claim.size_bytes, survey);
        if count == 0 {
            survey.push_unlimited(&claim.name, &place_of(placing), claim.origin.clone());
        }
    }
}

/// Returns the objects of documents, those in lists included.
fn objects(documents: &[Node]) -> impl Iterator<Item = &Node> {
    documents.iter().flat_map(|document| match document.get("items") {
        Some(items) => items.items().iter().collect::<Vec<_>>(),
        None => vec![document],
    })
}

fn claim<'a>(source: &SourceText, object: &'a Node, name: &str) -> Claim<'a> {
    let namespace = object.text_at(&["metadata", "namespace"]).unwrap_or("default");
    let size = object.text_at(&["spec", "resources", "requests", "storage"]);
    let is_named = |name: &&str| !name.is_empty();
    Claim {
        name: format!("{namespace}/{name}"),
        storage_class: object.text_at(&["spec", "storageClassName"]).filter(is_named),
        attributes_class: object.text_at(&["spec", "volumeAttributesClassName"]).filter(is_named),
        size_bytes: size.and_then(quantity),
        origin: source.at(object.line),
    }
}

/// Parses a quantity such as `10Gi`, `140Mi` or `100k`.
fn quantity(text: &str) -> Option<f64> {
    const SUFFIXES: [(&str, f64); 10] = [
        ("Ki", 1024.0),
        ("Mi", MIB),
        ("Gi", GIB),
        ("Ti", GIB * 1024.0),
        ("k", 1e3),
        ("K", 1e3),
        ("M", 1e6),
        ("m", 1e6),
        ("G", 1e9),
        ("T", 1e12),
    ];
    let found = SUFFIXES.iter().find_map(|(suffix, scale)| Some((text.strip_suffix(suffix)?, *scale)));
    let (digits, scale) = found.unwrap_or((text, 1.0));
    Some(number(digits)? * scale)
}

/// Returns the device that volumes of a class share: the driver, and its pool where it has one.
fn place_of(class: &VolumeClass) -> String {
    let pool = ["pool", "storagePool", "linstor.csi.linbit.com/storagePool", "fsName"]
        .iter()
        .find_map(|key| parameter(class, key));
    pool.map_or_else(|| class.driver.to_owned(), |pool| format!("{}/{pool}", class.driver))
}

fn parameter<'a>(class: &'a VolumeClass, key: &str) -> Option<&'a str> {
    let found =
        class.parameters.iter().find(|(name, _)| name.strip_prefix(LINSTOR_PREFIX).unwrap_or(name) == key);
    found.and_then(|(_, value)| value.text())
}

/// Records the limits of a class for one tenant; returns their number.
fn push(
    class: &VolumeClass,
    placing: &VolumeClass,
    tenant: &str,
    size_bytes: Option<f64>,
    survey: &mut Survey,
) -> usize {
    let place = place_of(placing);
    let of_driver: Vec<_> = KEYS.iter().filter(|row| class.driver.ends_with(row.0)).collect();
    let mut count = 0;
    for (key, node) in class.parameters {
        let at = Origin { line: node.line, ..class.origin.clone() };
        let bare = key.strip_prefix(LINSTOR_PREFIX).unwrap_or(key);
        let is_max_alone = class.driver.ends_with(CEPH)
            && bare
                .strip_prefix("max")
                .is_some_and(|rest| parameter(class, &format!("base{rest}")).is_none());
        let name = if is_max_alone { bare.replacen("max", "base", 1) } else { bare.to_owned() };
        let Some((_, _, direction, unit, factor)) = of_driver.iter().find(|row| row.1 == name) else {
            let is_scale = class.driver.ends_with(CEPH)
                && (bare.starts_with("max") || bare.ends_with("PerGiB") || bare == "baseVolSizeBytes");
            let is_suspect = SUSPECT.iter().any(|word| bare.to_lowercase().contains(word));
            if bare == "iopsPerGB" && size_bytes.is_some() {
                count += per_gigabyte(class, (tenant, &place), node, size_bytes, &at, survey);
            } else if is_suspect && !is_scale {
                survey.unknown_key(NAME, &format!("{} {bare}", class.driver), at);
            }
            continue;
        };
        let Some(value) = node.text().and_then(quantity) else {
            survey.unreadable(&at, format!("{bare}: expected a number"));
            continue;
        };
        let value = if class.driver.ends_with(CEPH) {
            scaled(class, &name, value, size_bytes)
        } else {
            value * factor
        };
        let full_key = format!("{} {bare}", class.kind);
        survey.push(storage_ceiling(*direction, *unit).limit(NAME, &full_key, (tenant, &place), value, at));
        count += 1;
    }
    count
}

/// Returns the limit of a Ceph volume: a base, and more for each GiB beyond the base size, up to a maximum
/// (ceph-csi, `internal/rbd/qos.go`).
fn scaled(class: &VolumeClass, key: &str, base: f64, size_bytes: Option<f64>) -> f64 {
    let rest = key.strip_prefix("base").unwrap_or(key);
    let mut letters = rest.chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    let per_gib = format!("{}{}PerGiB", first.map(String::from).unwrap_or_default(), letters.as_str());
    let value = |key: &str| parameter(class, key).and_then(number);
    let (Some(per_gib), Some(base_size), Some(size)) =
        (value(&per_gib), value("baseVolSizeBytes"), size_bytes)
    else {
        return base;
    };
    if size <= base_size {
        return base;
    }
    let grown = base + ((size - base_size) / GIB).floor() * per_gib;
    value(&format!("max{rest}")).map_or(grown, |max| grown.min(max))
}

/// Records the limit of a volume whose class gives requests per gigabyte.
fn per_gigabyte(
    class: &VolumeClass,
    names: (&str, &str),
    node: &Node,
    size_bytes: Option<f64>,
    at: &Origin,
    survey: &mut Survey,
) -> usize {
    let (Some(rate), Some(size)) = (node.text().and_then(number), size_bytes) else { return 0 };
    let meaning = storage_ceiling(Direction::Total, LimitUnit::RequestsPerS);
    let key = format!("{} iopsPerGB", class.kind);
    survey.push(meaning.limit(NAME, &key, names, rate * size / GIB, at.clone()));
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
apiVersion: v1
kind: List
items:
- apiVersion: storage.k8s.io/v1
  kind: StorageClass
  metadata: {name: fast}
  provisioner: rook-ceph.rbd.csi.ceph.com
  parameters: {pool: p, baseIops: '100', iopsPerGiB: '10', baseVolSizeBytes: '1073741824', maxIops: '125', readQosX: '1'}
- apiVersion: storage.k8s.io/v1
  kind: VolumeAttributesClass
  metadata: {name: gold}
  driverName: rook-ceph.rbd.csi.ceph.com
  parameters: {maxReadBps: '5000'}
- kind: PersistentVolumeClaim
  metadata: {name: a, namespace: n}
  spec: {storageClassName: fast, resources: {requests: {storage: 3Gi}}}
- kind: PersistentVolumeClaim
  metadata: {name: b, namespace: n}
  spec: {storageClassName: fast, resources: {requests: {storage: 9Gi}}}
- kind: PersistentVolumeClaim
  metadata: {name: c, namespace: n}
  spec: {storageClassName: fast, volumeAttributesClassName: gold, resources: {requests: {storage: 9Gi}}}
- kind: PersistentVolumeClaim
  metadata: {name: d}
  spec: {storageClassName: unseen}
";

    #[test]
    fn claims_have_the_limits_of_their_class_and_size() {
        let mut survey = Survey::default();
        read(&[SourceText::new("all.yaml", TEXT)], &mut survey);
        let rows: Vec<_> =
            survey.limits.iter().map(|l| (l.tenant.as_str(), l.place.as_str(), l.value)).collect();
        let pool = "rook-ceph.rbd.csi.ceph.com/p";
        assert_eq!(rows, [("n/a", pool, 120.0), ("n/b", pool, 125.0), ("n/c", pool, 5000.0)]);
        assert_eq!(survey.unlimited.iter().map(|at| at.tenant.as_str()).collect::<Vec<_>>(), ["default/d"]);
        assert_eq!(survey.unknown_keys()[0].key, "rook-ceph.rbd.csi.ceph.com readQosX");
    }
}
