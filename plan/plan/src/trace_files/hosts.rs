//! The hosts file of a recording, from what the recording and this machine say of the server.

use crate::trace_files::split::SplitPart;
use machine::identity;
use model::OperationError;
use operation::marks::MARK;
use operation::text::{host_of, link_rate, toml_comment, toml_string};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::Command;

/// Ports whose protocol the proxy speaks, with its name there.
const PROXY_PORTS: [(u16, &str); 3] = [(2049, "nfs"), (10809, "nbd"), (11211, "memcached")];

/// Name that a plan gives to the only server of the class in [`super::cluster_text`].
const SERVER: &str = "server-1";

/// The server of split requests, as far as known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerPlace {
    /// Name of its machine.
    pub host: Option<String>,
    /// Address at which clients reach it.
    pub address: Option<IpAddr>,
    pub port: Option<u16>,
    /// Device by which its answers leave.
    pub device: Option<String>,
    /// Nominal rate of that device's link, such as `1Gbps`.
    pub link: Option<String>,
}

impl ServerPlace {
    /// Returns what the names of servers (`port-2049`, `10.0.0.9:2049`) and, if this machine listens at that port, its
    /// route to the clients say.
    ///
    /// # Errors
    /// When the requests are not those of one server.
    pub fn of(servers: &BTreeSet<String>, parts: &[SplitPart]) -> Result<Self, OperationError> {
        let mut servers = servers.iter();
        let (Some(server), None) = (servers.next(), servers.next()) else {
            return Err(OperationError::input("--write-hosts: expected the requests of one server, with its port")
                .hint(
                    "record each port by itself; the recording of a proxy was made with a hosts file: keep that one",
                ));
        };
        let (address, port) = server_name(server);
        let mut place = Self { address, port, ..Self::default() };
        // A socket can be bound to an address of this machine only.
        let is_own = address.is_none_or(|address| UdpSocket::bind((address, 0)).is_ok());
        let is_here = is_own && port.is_some_and(|port| machine::listening::is_any_listening(&[port].into()));
        if is_here {
            place.host = identity::host_name();
            let mut clients = parts.iter().filter_map(|part| client_address(&part.owner));
            if let Some((device, source)) = clients.find_map(route_to) {
                place.link = identity::device_speed(&device).and_then(link_rate);
                place.device = Some(device);
                place.address = address.or(Some(source));
            }
        }
        Ok(place)
    }
}

/// Returns the address and the port in the name of a server.
fn server_name(name: &str) -> (Option<IpAddr>, Option<u16>) {
    if let Ok(address) = name.parse::<SocketAddr>() {
        return (Some(address.ip()), Some(address.port()));
    }
    (None, name.strip_prefix("port-").and_then(|port| port.parse().ok()))
}

/// Returns the address in the name of an owner: `10.0.0.1`, `10.0.0.1@port-2049`.
fn client_address(owner: &str) -> Option<IpAddr> {
    owner.split('@').next()?.parse().ok()
}

/// Returns the device and the source address by which this machine reaches an address; `None` also without `ip`.
fn route_to(client: IpAddr) -> Option<(String, IpAddr)> {
    let output = Command::new("ip").args(["-j", "route", "get"]).arg(client.to_string()).output().ok()?;
    let routes: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    let of = |field: &str| routes[0][field].as_str();
    Some((of("dev")?.to_owned(), of("prefsrc")?.parse().ok()?))
}

/// Returns a hosts file of this server and the workloads, with `CHANGE` in place of unknown values, which is refused
/// until they are filled in.
pub fn hosts_text(source: &Path, place: &ServerPlace, parts: &[SplitPart], storage: Option<&Path>) -> String {
    let known = |value: Option<String>, example: &str| value.unwrap_or_else(|| format!("{MARK}: {example}"));
    let host = known(place.host.clone(), "the server's machine");
    let address = known(place.address.map(|address| address.to_string()), "such as 10.0.0.9");
    let link = known(place.link.clone(), "the link, such as 1Gbps");
    let device = place.device.clone().unwrap_or_else(|| MARK.to_owned());
    let profile = known(storage.map(|path| path.display().to_string()), "device profile, such as ssd.json");
    let port = place.port.unwrap_or(2049);
    // The server stays where it is, and the proxy takes a port beside it.
    let beside = port.checked_add(10_000).unwrap_or(port - 10_000);
    let at = |port: u16| match place.address {
        Some(address) if place.port.is_some() => SocketAddr::new(address, port).to_string(),
        _ => format!("{MARK}: such as 10.0.0.9:{port}"),
    };
    let [listen, server] = [beside, port].map(at);
    let mut front = vec![("listen", &listen), ("forward", &server)];
    // Connections of the machine itself are not redirected.
    if place.address.is_none_or(|address| !address.is_loopback()) {
        front.push(("redirect", &server));
    }
    let front: String =
        front.into_iter().map(|(field, address)| format!(", {field} = {}", toml_string(address))).collect();
    let protocol = PROXY_PORTS.iter().find(|(port, _)| Some(*port) == place.port).map(|(_, name)| *name);
    let protocol = known(protocol.map(str::to_owned), "nfs, nbd or memcached");
    let port = place.port.map(|port| format!("port = [{port}]\n")).unwrap_or_default();
    let mut text = format!(
        "# Where the server and the clients of {} are. Replace each {MARK}; docs/reference/hosts-file.md describes\n\
         # every field.\n\
         [[host]]\nname = {}\ndevice = {{ {} = {} }}\n\n\
         [[server]]\nname = {} # as in the plan\nhost = {}\naddress = [{}]\n{port}\n\
         [server.storage]\nprofile = {}\n\
         # listen: the proxy; forward: the server; redirect: new connections to it reach the proxy while that runs,\n\
         # not those to other addresses of the server, which each need a front, nor those of its own machine.\n\
         front = [{{ protocol = {}{front} }}]\n",
        toml_comment(&source.display().to_string()),
        toml_string(&host),
        toml_string(&device),
        toml_string(&link),
        toml_string(SERVER),
        toml_string(&host),
        toml_string(&address),
        toml_string(&profile),
        toml_string(&protocol),
    );
    let clients: Vec<(&SplitPart, IpAddr)> =
        parts.iter().filter_map(|part| Some((part, client_address(&part.owner)?))).collect();
    if clients.is_empty() {
        text += "\n# No client is known by its address: split with --by client, or add a [[client]] for each workload.\n";
        return text;
    }
    text += "\n# The clients' machines were not seen. `apply` needs the device and the link of each, and takes those of\n\
             # the server until they are corrected; the proxy needs neither.\n";
    for (part, address) in clients {
        let is_here = Some(address) == place.address;
        let client_host = if is_here { host.clone() } else { host_of(&address.to_string()) };
        if !is_here {
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "\n[[host]]\nname = {}\ndevice = {{ {} = {} }}\n",
                toml_string(&client_host),
                toml_string(&device),
                toml_string(&link)
            );
        }
        let _ = write!(
            text,
            "\n[[client]]\nworkload = {}\nhost = {}\naddress = [{}]\n",
            toml_string(&part.owner),
            toml_string(&client_host),
            toml_string(&address.to_string())
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_named_by_port_or_by_address_and_port() {
        let port = |name: &str| server_name(name);
        assert_eq!(port("port-2049"), (None, Some(2049)));
        assert_eq!(port("10.0.0.9:11211"), (Some([10, 0, 0, 9].into()), Some(11211)));
        assert_eq!(port("[fd00::9]:11211"), (Some("fd00::9".parse().expect("an address")), Some(11211)));
        assert_eq!(port("8,16"), (None, None));
        assert_eq!(client_address("10.0.0.1@port-2049"), Some([10, 0, 0, 1].into()));
        assert_eq!(client_address("mail"), None);
    }

    #[test]
    fn what_is_not_known_is_marked() {
        let part = |owner: &str| SplitPart {
            owner: owner.to_owned(),
            path: "t.parquet".into(),
            requests: 1,
            reads: 1,
            bytes: 1,
            span: units::Nanos(1),
        };
        let marks = |place: &ServerPlace, storage: Option<&Path>| {
            let text = hosts_text(Path::new("rec"), place, &[part("10.0.0.1"), part("10.0.0.9")], storage);
            text.lines()
                .filter(|line| !line.starts_with('#'))
                .map(|line| line.matches(MARK).count())
                .sum::<usize>()
        };
        let elsewhere = ServerPlace { port: Some(11211), ..ServerPlace::default() };
        // The host twice, device and link of it and of two clients, address, profile, and three of the proxy.
        assert_eq!(marks(&elsewhere, None), 2 + 3 * 2 + 2 + 3);
        let here = ServerPlace {
            host: Some("vm".to_owned()),
            address: Some([10, 0, 0, 9].into()),
            device: Some("eth0".to_owned()),
            link: Some("1Gbps".to_owned()),
            ..elsewhere
        };
        assert_eq!(marks(&here, Some(Path::new("ssd.json"))), 0);
    }

    #[test]
    fn requests_of_several_servers_or_of_none_have_no_hosts_file() {
        for servers in [vec![], vec!["port-1", "port-2"]] {
            let servers = servers.into_iter().map(str::to_owned).collect();
            let error = ServerPlace::of(&servers, &[]).expect_err("it is not one server");
            assert!(error.message.contains("one server"), "{}", error.message);
        }
    }
}
