//! Where the servers and workloads of a policy are: hosts, devices, addresses. What people write (`hosts.toml`),
//! checked as far as it can be without a policy.
//!
//! A policy moves workloads between servers; a deployment stays. So it says of a server and of a client where each
//! is, and flows between them follow from the policy's placement.

mod storage;

use crate::address::{Prefix, Protocol};
use model::OperationError;
use serde::Deserialize;
use std::collections::BTreeMap;
pub use storage::{Front, FrontProtocol, Over, Storage};
use units::ByteRate;

/// The differentiated services code points of the levels, first served first: the class selectors 7 to 1, which
/// equipment that looks only at precedence orders in the same way.
pub const DSCP_DEFAULT: [u8; LEVELS] = [56, 48, 40, 32, 24, 16, 8];

/// Levels of priority of workloads: HTB has eight, and the last is for everybody else.
pub const LEVELS: usize = 7;

/// A deployment as in `hosts.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deployment {
    /// Code points that mark the levels.
    #[serde(default = "dscp_default")]
    pub dscp: Vec<u8>,
    /// Machines with devices to shape.
    #[serde(rename = "host")]
    pub hosts: Vec<Host>,
    /// Where the policy's servers are.
    #[serde(rename = "server", default)]
    pub servers: Vec<Server>,
    /// Where its workloads' requests come from.
    #[serde(rename = "client", default)]
    pub clients: Vec<Client>,
}

fn dscp_default() -> Vec<u8> {
    DSCP_DEFAULT.to_vec()
}

/// A machine, or a network namespace of this one.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Unique.
    pub name: String,
    /// The network namespace (`ip netns`) of this machine that it is; absent for a machine of its own.
    #[serde(default)]
    pub netns: Option<String>,
    /// Whether it forwards other hosts' traffic and goes by DSCP.
    #[serde(default)]
    pub switch: bool,
    /// What finds the packets of a workload.
    #[serde(default)]
    pub filters: Filters,
    /// Devices that may be shaped, with what they carry.
    #[serde(deserialize_with = "rates")]
    pub device: BTreeMap<String, ByteRate>,
}

/// What finds the packets of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Filters {
    /// nftables: what the host itself sends or routes; marks DSCP; control groups.
    #[default]
    Nft,
    /// `u32` filters of tc: bridged traffic of virtual machines, too; no marks.
    Tc,
}

/// Where a server of the policy is.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// As in the policy.
    pub name: String,
    /// The host that it runs on.
    pub host: String,
    /// The device that replies leave by; may be left out where the host has one.
    #[serde(default)]
    pub device: Option<String>,
    /// Its addresses.
    pub address: Vec<Prefix>,
    /// Ports of its service; all when empty.
    #[serde(default)]
    pub port: Vec<u16>,
    /// What the ports are of.
    #[serde(default = "tcp")]
    pub protocol: Protocol,
    /// Its device, when a proxy stands before it.
    #[serde(default)]
    pub storage: Option<Storage>,
}

/// Where requests of a workload come from.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// As in the policy.
    pub workload: String,
    /// The host that sends them.
    pub host: String,
    /// The device that they leave by; may be left out where the host has one.
    #[serde(default)]
    pub device: Option<String>,
    /// The client's addresses; any when empty.
    #[serde(default)]
    pub address: Vec<Prefix>,
    /// Its own ports; any when empty.
    #[serde(default)]
    pub port: Vec<u16>,
    /// The server's ports that this workload uses; those of the server when empty.
    #[serde(default)]
    pub server_port: Vec<u16>,
    /// The export or volume that it uses: the path of an NFS mount, the name of an NBD export; any without it. For
    /// proxies of storage.
    #[serde(default)]
    pub export: Option<String>,
    /// A mark that its packets already bear.
    #[serde(default)]
    pub dscp: Option<u8>,
    /// Control group (v2) of its processes.
    #[serde(default)]
    pub cgroup: Option<String>,
    /// The part of the workload's limits for this client, above 0 to 1: several devices cannot share a bucket.
    #[serde(default)]
    pub share: Option<f64>,
}

fn tcp() -> Protocol {
    Protocol::Tcp
}

fn rates<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, ByteRate>, D::Error> {
    let texts = BTreeMap::<String, String>::deserialize(deserializer)?;
    let rate = |(name, text): (String, String)| match text.parse::<ByteRate>() {
        Ok(rate) => Ok((name, rate)),
        Err(error) => Err(serde::de::Error::custom(format_args!("device {name}: {error}"))),
    };
    texts.into_iter().map(rate).collect()
}

const HINT: &str = "docs/apply.md describes the file; `tailwright apply --help` shows one";

impl Deployment {
    /// Reads TOML and checks it.
    pub fn parse(text: &str) -> Result<Self, OperationError> {
        let deployment: Self = toml::from_str(text)
            .map_err(|error| OperationError::input(error.to_string().trim_end()).hint(HINT))?;
        deployment.check().map_err(|message| OperationError::input(message).hint(HINT))?;
        Ok(deployment)
    }

    /// The host of this name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == name)
    }

    fn check(&self) -> Result<(), String> {
        check_dscp(&self.dscp)?;
        unique("host", self.hosts.iter().map(|host| &host.name))?;
        unique("server", self.servers.iter().map(|server| &server.name))?;
        unique("netns", self.hosts.iter().filter_map(|host| host.netns.as_ref()))?;
        self.hosts.iter().try_for_each(check_host)?;
        for server in &self.servers {
            let who = format!("server {}", server.name);
            self.place(&server.host, server.device.as_deref()).map_err(|error| format!("{who}: {error}"))?;
            if server.address.is_empty() {
                return Err(format!("{who}: address: it needs at least one"));
            }
            if let Some(storage) = &server.storage {
                storage.check().map_err(|error| format!("{who}: storage: {error}"))?;
            }
        }
        self.clients.iter().try_for_each(|client| {
            self.check_client(client).map_err(|error| format!("client of {}: {error}", client.workload))
        })
    }

    fn check_client(&self, client: &Client) -> Result<(), String> {
        self.place(&client.host, client.device.as_deref())?;
        if client.dscp.is_some_and(|dscp| dscp > 63) {
            return Err("dscp: 0 to 63".into());
        }
        if client.share.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
            return Err("share: above 0 and at most 1".into());
        }
        let harmless = |c: char| c.is_ascii_alphanumeric() || "/._-@:".contains(c);
        match &client.cgroup {
            Some(path) if !path.chars().all(harmless) || path.trim_matches('/').is_empty() => {
                Err(format!("cgroup: '{path}' is not a path such as system.slice/mail.service"))
            }
            _ => Ok(()),
        }
    }

    /// The name of the device that is meant.
    pub(super) fn place<'a>(
        &'a self,
        host: &str,
        device: Option<&str>,
    ) -> Result<(&'a Host, &'a str), String> {
        let found = self.host(host).ok_or_else(|| format!("there is no host '{host}'"))?;
        if found.switch {
            return Err(format!("'{host}' is a switch"));
        }
        let mut names = found.device.keys();
        let name = match device {
            Some(wanted) => {
                names.find(|name| *name == wanted).ok_or(format!("host '{host}' has no device '{wanted}'"))?
            }
            None if found.device.len() == 1 => names.next().expect("there is one"),
            None => return Err(format!("host '{host}' has several devices: say which")),
        };
        Ok((found, name))
    }
}

fn check_host(host: &Host) -> Result<(), String> {
    let who = &host.name;
    if host.device.is_empty() {
        return Err(format!("host {who}: it names no device"));
    }
    let named = |name: &str| {
        !name.is_empty() && name.len() <= 255 && !name.starts_with('-') && !name.starts_with('.')
    };
    let harmless =
        |name: &str| named(name) && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-@:".contains(c));
    // Names become words of commands and names of files.
    let names = host.device.keys().chain(&host.netns).chain([who]);
    for name in names {
        if !harmless(name) {
            return Err(format!(
                "host {who}: '{name}' has characters other than letters, digits and . _ - @ :"
            ));
        }
    }
    match host.device.keys().find(|name| name.len() > 15) {
        Some(name) => Err(format!("host {who}: '{name}' is longer than the 15 letters of a device name")),
        None => Ok(()),
    }
}

fn check_dscp(dscp: &[u8]) -> Result<(), String> {
    let distinct = |index: usize| !dscp[..index].contains(&dscp[index]);
    if dscp.len() == LEVELS && (0..LEVELS).all(|i| (1..64).contains(&dscp[i]) && distinct(i)) {
        return Ok(());
    }
    Err(format!("dscp: {LEVELS} different code points from 1 to 63, first served first"))
}

fn unique<'a>(what: &str, names: impl Iterator<Item = &'a String>) -> Result<(), String> {
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
        assert_eq!(deployment.dscp, DSCP_DEFAULT);
        assert_eq!(deployment.place("app", None).map(|(_, device)| device), Ok("eth0"));
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
            let fault = Deployment::parse(&text).expect_err(to);
            assert!(fault.message.contains(said), "{to}: {}", fault.message);
        }
    }
}
