//! Hosts, devices and addresses of a policy's servers and workloads. Users write it as `hosts.toml`; it
//! is checked as far as possible without a policy.
//!
//! A policy moves workloads between servers; a deployment stays. So it only locates servers and clients;
//! the packets that flow between them follow from the policy's placement.

mod storage;

use crate::address::{AddressPrefix, TransportProtocol};
use model::{NAME_EXPECTED, OperationError, PRIORITY_LEVELS, is_usable_name};
use operation::own_files::{OwnFile, mistaken};
use serde::Deserialize;
use std::collections::BTreeMap;
pub(crate) use storage::front_protocols;
pub use storage::{Front, OverLimitRule, ServerStorage, SourceAddress};
use units::ByteRate;

/// Differentiated services code points of the levels, highest priority first: the class selectors 7 to 1.
/// Equipment that only reads the precedence bits orders them in the same way.
pub(crate) const DEFAULT_DSCP: [u8; PRIORITY_LEVELS] = [56, 48, 40, 32, 24, 16, 8];

/// The longest name of a network device that Linux allows: IFNAMSIZ without the terminating zero.
const DEVICE_NAME_MAX: usize = 15;

const HINT: &str = "docs/reference/hosts-file.md describes the file; `tailwright apply --help` shows one";

/// A deployment, as `hosts.toml` describes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deployment {
    /// Code points that mark the levels, highest priority first.
    #[serde(default = "default_dscp")]
    pub dscp: Vec<u8>,
    /// Machines with devices to shape.
    #[serde(rename = "host")]
    pub hosts: Vec<DeploymentHost>,
    /// Servers of the policy, with their hosts.
    #[serde(rename = "server", default)]
    pub servers: Vec<DeploymentServer>,
    /// Sources of the requests of the policy's workloads.
    #[serde(rename = "client", default)]
    pub clients: Vec<DeploymentClient>,
}

fn default_dscp() -> Vec<u8> {
    DEFAULT_DSCP.to_vec()
}

/// A machine, or a network namespace of this one.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeploymentHost {
    /// Unique name of the host.
    pub name: String,
    /// Network namespace (`ip netns`) of this machine that is the host; `None` for a separate machine.
    #[serde(default)]
    pub netns: Option<String>,
    /// The host forwards traffic of others and classifies it by DSCP marks.
    #[serde(default)]
    pub switch: bool,
    /// Mechanism that classifies the packets of a workload.
    #[serde(default)]
    pub filters: PacketFilters,
    /// Devices that may be shaped, with the rate of their links.
    #[serde(deserialize_with = "rates")]
    pub device: BTreeMap<String, ByteRate>,
}

/// Mechanism that classifies the packets of a workload on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PacketFilters {
    /// Rules of nftables: they see packets that the host sends or routes, set DSCP marks, and know
    /// control groups.
    #[default]
    Nft,
    /// `u32` filters of tc: they also see bridged traffic of virtual machines, but set no marks.
    Tc,
}

/// Location of a server of the policy.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeploymentServer {
    /// Name of the server in the policy.
    pub name: String,
    /// The host that the server runs on.
    pub host: String,
    /// Outgoing device of replies; optional if the host has only one.
    #[serde(default)]
    pub device: Option<String>,
    /// Addresses of the server, at least one.
    pub address: Vec<AddressPrefix>,
    /// Ports of its service; all ports when empty.
    #[serde(default)]
    pub port: Vec<u16>,
    /// Transport protocol of the ports.
    #[serde(default = "tcp")]
    pub protocol: TransportProtocol,
    /// Storage device, if a proxy stands before the server.
    #[serde(default)]
    pub storage: Option<ServerStorage>,
}

/// A source of requests of a workload.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeploymentClient {
    /// Name of the workload in the policy.
    pub workload: String,
    /// The host that sends the requests.
    pub host: String,
    /// Outgoing device of requests; optional if the host has only one.
    #[serde(default)]
    pub device: Option<String>,
    /// Addresses of the client; any address when empty.
    #[serde(default)]
    pub address: Vec<AddressPrefix>,
    /// Source ports of the client; any port when empty.
    #[serde(default)]
    pub port: Vec<u16>,
    /// Ports of the server that this workload uses; all ports of the server when empty.
    #[serde(default)]
    pub server_port: Vec<u16>,
    /// Export or volume that the workload uses, for storage proxies: the path of an NFS mount, or the
    /// name of an NBD export; any when absent.
    #[serde(default)]
    pub export: Option<String>,
    /// DSCP mark that its packets already carry, 0 to 63.
    #[serde(default)]
    pub dscp: Option<u8>,
    /// Control group (v2) of its processes.
    #[serde(default)]
    pub cgroup: Option<String>,
    /// Fraction of the workload's limits for this client, above 0 to 1: several devices cannot share a
    /// bucket.
    #[serde(default)]
    pub share: Option<f64>,
}

fn tcp() -> TransportProtocol {
    TransportProtocol::Tcp
}

fn rates<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, ByteRate>, D::Error> {
    let mut rates = BTreeMap::new();
    for (name, text) in BTreeMap::<String, String>::deserialize(deserializer)? {
        let rate = text.parse::<ByteRate>();
        let rate = rate.map_err(|error| serde::de::Error::custom(format_args!("device {name}: {error}")))?;
        rates.insert(name, rate);
    }
    Ok(rates)
}

impl Deployment {
    /// Reads the text of a `hosts.toml`.
    ///
    /// # Errors
    /// When the text is not such a file, or is inconsistent.
    pub fn parse(text: &str) -> Result<Self, OperationError> {
        let deployment: Self = toml::from_str(text).map_err(|error| {
            mistaken("", text, OwnFile::Hosts)
                .unwrap_or_else(|| OperationError::input(error.to_string().trim_end()).hint(HINT))
        })?;
        let mistakes = deployment.mistakes();
        if mistakes.is_empty() { Ok(deployment) } else { Err(all_at_once(&mistakes).hint(HINT)) }
    }

    /// Returns the host with this name.
    pub fn host(&self, name: &str) -> Option<&DeploymentHost> {
        self.hosts.iter().find(|host| host.name == name)
    }

    /// Returns the inconsistencies, a sentence each.
    fn mistakes(&self) -> Vec<String> {
        let mut checks = vec![
            check_dscp(&self.dscp),
            check_unique("host", self.hosts.iter().map(|host| &host.name)),
            check_unique("server", self.servers.iter().map(|server| &server.name)),
            check_unique("netns", self.hosts.iter().filter_map(|host| host.netns.as_ref())),
        ];
        checks.extend(self.hosts.iter().map(check_host));
        for server in &self.servers {
            let who = format!("server {}", server.name);
            let device = self.device(&server.host, server.device.as_deref()).map(drop);
            checks.push(device.map_err(|error| format!("{who}: {error}")));
            if server.address.is_empty() {
                checks.push(Err(format!("{who}: address: it needs at least one")));
            }
            if let Some(storage) = &server.storage {
                checks.push(storage.check().map_err(|error| format!("{who}: storage: {error}")));
            }
        }
        for client in &self.clients {
            let checked = self.check_client(client);
            let who = client.workload.escape_debug();
            checks.push(checked.map_err(|error| format!("client of {who}: {error}")));
        }
        checks.into_iter().filter_map(Result::err).collect()
    }

    fn check_client(&self, client: &DeploymentClient) -> Result<(), String> {
        if !is_usable_name(&client.workload) {
            return Err(format!("workload: {NAME_EXPECTED}"));
        }
        self.device(&client.host, client.device.as_deref())?;
        if client.dscp.is_some_and(|dscp| dscp > 63) {
            return Err("dscp: 0 to 63".into());
        }
        if client.share.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
            return Err("share: above 0 and at most 1".into());
        }
        match &client.cgroup {
            Some(path)
                if !path.chars().all(|c| c == '/' || is_plain(c)) || path.trim_matches('/').is_empty() =>
            {
                Err(format!("cgroup: '{path}' is not a path such as system.slice/mail.service"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the host and the device with these names. Without a device name, the host's only device is
    /// meant.
    pub(super) fn device<'a>(
        &'a self,
        host: &str,
        device: Option<&str>,
    ) -> Result<(&'a DeploymentHost, &'a str), String> {
        let owner = self.host(host).ok_or_else(|| format!("there is no host '{host}'"))?;
        if owner.switch {
            return Err(format!("'{host}' is a switch"));
        }
        let mut names = owner.device.keys();
        let name = match device {
            Some(wanted) => {
                names.find(|name| *name == wanted).ok_or(format!("host '{host}' has no device '{wanted}'"))?
            }
            None if owner.device.len() == 1 => names.next().expect("there is one"),
            None => return Err(format!("host '{host}' has several devices: say which")),
        };
        Ok((owner, name))
    }
}

/// Combines several mistakes into one error.
pub(crate) fn all_at_once(mistakes: &[String]) -> OperationError {
    match mistakes {
        [only] => OperationError::input(only),
        all => OperationError::input(format_args!("{} mistakes:\n  {}", all.len(), all.join("\n  "))),
    }
}

fn check_host(host: &DeploymentHost) -> Result<(), String> {
    let who = &host.name;
    if host.device.is_empty() {
        return Err(format!("host {who}: it names no device"));
    }
    for name in host.device.keys().chain(&host.netns).chain([who]) {
        if !is_safe_name(name) {
            return Err(format!(
                "host {who}: '{name}' has characters other than letters, digits and . _ - @ :"
            ));
        }
    }
    match host.device.keys().find(|name| name.len() > DEVICE_NAME_MAX) {
        Some(name) => Err(format!("host {who}: '{name}' is longer than the 15 letters of a device name")),
        None => Ok(()),
    }
}

/// Returns true if a name is safe as a word of a command and a part of a file name: not an option, hidden
/// file or path.
fn is_safe_name(name: &str) -> bool {
    (1..=255).contains(&name.len()) && !name.starts_with(['-', '.']) && name.chars().all(is_plain)
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._-@:".contains(c)
}

fn check_dscp(dscp: &[u8]) -> Result<(), String> {
    let is_valid =
        dscp.iter().enumerate().all(|(i, mark)| (1..64).contains(mark) && !dscp[..i].contains(mark));
    if is_valid && dscp.len() == PRIORITY_LEVELS {
        return Ok(());
    }
    Err(format!("dscp: {PRIORITY_LEVELS} different code points from 1 to 63, first served first"))
}

fn check_unique<'a>(what: &str, names: impl Iterator<Item = &'a String>) -> Result<(), String> {
    let mut names: Vec<&String> = names.collect();
    names.sort();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("there are two {what}s '{}'", pair[0])),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"
        [[host]]
        name = "app"
        device.eth0 = "1Gbps"
        [[host]]
        name = "store"
        device = { eth0 = "1Gbps", eth1 = "10Gbps" }
        [[server]]
        name = "ssd-1"
        host = "store"
        device = "eth1"
        address = ["10.0.0.9"]
        [[client]]
        workload = "mail"
        host = "app"
    "#;

    #[test]
    fn a_small_one_is_read() {
        let deployment = Deployment::parse(SMALL).expect("it is right");
        assert_eq!(deployment.host("store").map(|host| host.device["eth1"].bytes_per_sec()), Some(1.25e9));
        assert_eq!(deployment.dscp, DEFAULT_DSCP);
        assert_eq!(deployment.device("app", None).map(|(_, device)| device), Ok("eth0"));
    }

    #[test]
    fn mistakes_are_named() {
        for (from, to, said) in [
            ("\"app\"\n        device", "\"store\"\n        device", "two hosts 'store'"),
            ("\"1Gbps\"\n", "\"fast\"\n", "device eth0"),
            ("host = \"store\"\n        device = \"eth1\"", "host = \"store\"", "say which"),
            ("device = \"eth1\"", "device = \"eth7\"", "no device 'eth7'"),
            ("\"10.0.0.9\"", "", "at least one"),
            ("host = \"app\"", "host = \"gone\"", "no host 'gone'"),
            ("host = \"app\"", "host = \"app\"\nshare = 1.5", "share"),
            ("host = \"app\"", "host = \"app\"\ncgroup = \"a b\"", "cgroup"),
            ("host = \"app\"", "host = \"app\"\ndscp = 64", "dscp"),
            ("host = \"app\"", "host = \"app\"\ncolour = 1", "unknown field"),
            ("device.eth0", "device.\"eth0;rm\"", "characters other than"),
            ("device.eth0", "device.averylongdevicename", "15 letters"),
            ("name = \"app\"", "name = \"../app\"", "characters other than"),
            ("address = [", "storage = { profile = \"p\", front = [] }\naddress = [", "at least one"),
            (
                "address = [",
                "storage = { profile = \"p\", outstanding = 2, reserve = 2, front = [{ protocol = \"nbd\", listen = \"::1\", forward = \"::1\" }] }\naddress = [",
                "reserve: fewer than outstanding",
            ),
            (
                "address = [",
                "storage = { profile = \"p\", front = [{ protocol = \"nbd\", listen = \"here\", forward = \"::1\" }] }\naddress = [",
                "'here' is not an address",
            ),
        ] {
            let text = SMALL.replacen(from, to, 1);
            assert_ne!(text, SMALL, "{from}");
            let error = Deployment::parse(&text).expect_err(to);
            assert!(error.message.contains(said), "{to}: {}", error.message);
        }
    }
}
