//! Hosts and a switch on one machine: network namespaces with one device `eth0` each, joined by a bridge
//! in a separate namespace. Traffic takes the kernel's usual path except for hardware: until a device is
//! shaped, links are as fast as the CPU copies.
//!
//! The names of namespaces begin with the caller's prefix; no others are touched. The caller supplies the
//! function that runs programs, with a command line and standard input as arguments.
//!
//! Not covered: delay and loss of links.

use std::net::{Ipv4Addr, Ipv6Addr};

/// The network device of every host.
pub const DEVICE: &str = "eth0";

/// The most hosts of a network: they are numbered in the last byte of an IPv4 address.
const HOSTS_MAX: usize = 250;

/// The hosts and the switch of a virtual network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualNetwork {
    /// The namespace of the switch, which has the `port` of each host as a device.
    pub switch: String,
    /// The hosts in the order in which they were named.
    pub hosts: Vec<VirtualHost>,
}

/// A host of a virtual network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualHost {
    /// The name that the caller gave.
    pub name: String,
    /// The network namespace that is the host.
    pub netns: String,
    /// The address of the host, in 10.77.0.0/16.
    pub ipv4: Ipv4Addr,
    /// The address of the host, in fd77::/64.
    pub ipv6: Ipv6Addr,
    /// The device of the switch that leads to the host.
    pub port: String,
}

type CommandLine = (String, Option<String>);

impl VirtualNetwork {
    /// Plans the network that [`Self::create`] creates. Names consist of letters, digits, `-` and `_`.
    ///
    /// # Panics
    /// With no hosts or more than 250.
    pub fn plan(prefix: &str, names: &[&str]) -> Self {
        assert!((1..=HOSTS_MAX).contains(&names.len()), "a virtual network has 1 to 250 hosts");
        let mut hosts = Vec::new();
        for (number, name) in (1u8..).zip(names) {
            hosts.push(VirtualHost {
                name: (*name).to_owned(),
                netns: format!("{prefix}-{name}"),
                ipv4: Ipv4Addr::new(10, 77, 0, number),
                ipv6: Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, u16::from(number)),
                port: format!("port{number}"),
            });
        }
        Self { switch: format!("{prefix}-switch"), hosts }
    }

    /// Creates namespaces, devices and addresses. What an earlier network with these names left is removed first.
    ///
    /// # Errors
    /// The first error of `run`; then nothing is left.
    ///
    /// # Panics
    /// As [`Self::plan`].
    pub fn create<E>(
        mut run: impl FnMut(&str, Option<&str>) -> Result<String, E>,
        prefix: &str,
        names: &[&str],
    ) -> Result<Self, E> {
        let network = Self::plan(prefix, names);
        network.remove(&mut run)?;
        for (line, input) in network.commands() {
            if let Err(error) = run(&line, input.as_deref()) {
                // The first error is the one to report.
                let _ = network.remove(&mut run);
                return Err(error);
            }
        }
        Ok(network)
    }

    /// Removes the namespaces that exist, with everything inside.
    ///
    /// # Errors
    /// The first error of `run`.
    pub fn remove<E>(&self, mut run: impl FnMut(&str, Option<&str>) -> Result<String, E>) -> Result<(), E> {
        let listed = run("ip netns list", None)?;
        let existing: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
        for netns in self.namespaces().filter(|netns| existing.contains(&netns.as_str())) {
            run(&format!("ip netns delete {netns}"), None)?;
        }
        Ok(())
    }

    /// Returns the host with this name.
    pub fn host(&self, name: &str) -> Option<&VirtualHost> {
        self.hosts.iter().find(|host| host.name == name)
    }

    /// Returns the commands that create the network: namespaces, cables, the bridge, and the inside of
    /// each host.
    fn commands(&self) -> Vec<CommandLine> {
        let mut commands = Vec::new();
        for netns in self.namespaces() {
            commands.push((format!("ip netns add {netns}"), None));
        }
        let mut links = Vec::new();
        let mut bridge = "link add bridge type bridge\nlink set bridge up\n".to_owned();
        for VirtualHost { netns, port, .. } in &self.hosts {
            let switch = &self.switch;
            links.push(format!("link add {DEVICE} netns {netns} type veth peer name {port} netns {switch}"));
            bridge += &format!("link set {port} master bridge\nlink set {port} up\n");
        }
        commands.push(("ip -batch -".to_owned(), Some(links.join("\n"))));
        commands.push((format!("ip -n {} -batch -", self.switch), Some(bridge)));
        for VirtualHost { netns, ipv4, ipv6, .. } in &self.hosts {
            // Without `nodad`, duplicate address detection makes the address unusable for about a second.
            let inside = format!(
                "address add {ipv4}/16 dev {DEVICE}\naddress add {ipv6}/64 dev {DEVICE} nodad\nlink set lo up\nlink set {DEVICE} up\n"
            );
            commands.push((format!("ip -n {netns} -batch -"), Some(inside)));
        }
        commands
    }

    fn namespaces(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.switch).chain(self.hosts.iter().map(|host| &host.netns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_a_network_by_hand() {
        let network = VirtualNetwork::plan("x", &["client", "server"]);
        let commands = network.commands();
        let lines: Vec<&str> = commands.iter().map(|(line, _)| line.as_str()).collect();
        assert_eq!(lines[..3], ["ip netns add x-switch", "ip netns add x-client", "ip netns add x-server"]);
        let (_, links) = &commands[3];
        let link = "link add eth0 netns x-server type veth peer name port2 netns x-switch";
        assert!(links.as_ref().is_some_and(|links| links.contains(link)), "{links:?}");
        let (_, inside) = &commands[6];
        let address = "address add fd77::2/64 dev eth0 nodad";
        assert!(inside.as_ref().is_some_and(|inside| inside.contains(address)), "{inside:?}");
        assert_eq!(commands.len(), 7);
    }

    #[test]
    fn after_an_error_nothing_is_left() {
        let mut existing: Vec<String> = Vec::new();
        let run = |line: &str, _: Option<&str>| match line.split(' ').collect::<Vec<_>>()[..] {
            ["ip", "netns", "list"] => Ok(existing.join("\n")),
            ["ip", "netns", "add", name] => {
                existing.push(name.to_owned());
                Ok(String::new())
            }
            ["ip", "netns", "delete", name] => {
                existing.retain(|other| other != name);
                Ok(String::new())
            }
            _ => Err("no veth here"),
        };
        assert_eq!(VirtualNetwork::create(run, "x", &["client"]), Err("no veth here"));
        assert!(existing.is_empty(), "{existing:?}");
    }
}
