//! Hosts and a switch on one machine: network namespaces with one device `eth0` each, joined by a bridge in a
//! namespace of its own. They go through the same kernel code as machines do, except for hardware: their links carry
//! what the CPU can copy until a device is shaped.
//!
//! Names are made of a prefix, which tells whose namespaces they are; nothing else is ever touched. Not covered:
//! delay and loss of links.

use crate::command::{Command, Run};
use model::OperationError;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The device of every host.
pub const DEVICE: &str = "eth0";

/// Hosts and a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lab {
    /// The namespace of the switch; its ports are the `port` of each host.
    pub switch: String,
    /// In the order in which they were asked for.
    pub hosts: Vec<LabHost>,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabHost {
    /// As asked for.
    pub name: String,
    /// Its network namespace.
    pub netns: String,
    /// Its address, in 10.77.0.0/16.
    pub ipv4: Ipv4Addr,
    /// Its address, in fd77::/64.
    pub ipv6: Ipv6Addr,
    /// The switch's device that leads to it.
    pub port: String,
}

impl Lab {
    /// What [`Lab::up`] makes, without making it. Names are letters, digits, `-` and `_`.
    ///
    /// # Panics
    /// With no hosts or more than 250.
    pub fn plan(prefix: &str, names: &[&str]) -> Self {
        assert!((1..=250).contains(&names.len()), "a lab has 1 to 250 hosts");
        let host = |(number, name): (u8, &&str)| LabHost {
            name: (*name).to_owned(),
            netns: format!("{prefix}-{name}"),
            ipv4: Ipv4Addr::new(10, 77, 0, number),
            ipv6: Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, u16::from(number)),
            port: format!("port{number}"),
        };
        Self { switch: format!("{prefix}-switch"), hosts: (1..=250).zip(names).map(host).collect() }
    }

    /// Makes namespaces, devices and addresses. What is left of an earlier lab with these names is removed first;
    /// after an error nothing is left.
    pub fn up(run: &mut dyn Run, prefix: &str, names: &[&str]) -> Result<Self, OperationError> {
        let lab = Self::plan(prefix, names);
        lab.down(run)?;
        for command in lab.commands() {
            if let Err(fault) = run.run(&command) {
                // The first error is the one to report.
                let _ = lab.down(run);
                return Err(fault);
            }
        }
        Ok(lab)
    }

    /// What makes it.
    pub fn commands(&self) -> Vec<Command> {
        let add = |netns: &String| Command::new(&format!("ip netns add {netns}"));
        let mut commands: Vec<Command> = self.namespaces().map(add).collect();
        let link = |host: &LabHost| {
            format!(
                "link add {DEVICE} netns {} type veth peer name {} netns {}",
                host.netns, host.port, self.switch
            )
        };
        let links: Vec<String> = self.hosts.iter().map(link).collect();
        commands.push(Command::new("ip -batch -").reading(links.join("\n")));
        let mut bridge = "link add bridge type bridge\nlink set bridge up\n".to_owned();
        for host in &self.hosts {
            bridge += &format!("link set {port} master bridge\nlink set {port} up\n", port = host.port);
        }
        commands.push(Command::new(&format!("ip -n {} -batch -", self.switch)).reading(bridge));
        for host in &self.hosts {
            let inside = format!(
                "address add {}/16 dev {DEVICE}\naddress add {}/64 dev {DEVICE} nodad\nlink set lo up\nlink set {DEVICE} up\n",
                host.ipv4, host.ipv6
            );
            commands.push(Command::new(&format!("ip -n {} -batch -", host.netns)).reading(inside));
        }
        commands
    }

    /// Removes the namespaces that are there, with everything inside.
    pub fn down(&self, run: &mut dyn Run) -> Result<(), OperationError> {
        let listed = run.run(&Command::new("ip netns list"))?;
        let present: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
        for netns in self.namespaces().filter(|netns| present.contains(&netns.as_str())) {
            run.run(&Command::new(&format!("ip netns delete {netns}")))?;
        }
        Ok(())
    }

    /// The host of this name.
    pub fn host(&self, name: &str) -> Option<&LabHost> {
        self.hosts.iter().find(|host| host.name == name)
    }

    fn namespaces(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.switch).chain(self.hosts.iter().map(|host| &host.netns))
    }
}

/// Moves the calling thread into a network namespace, see [`machine::netns::enter`].
pub fn enter(netns: &str) -> Result<(), OperationError> {
    machine::netns::enter(netns).map_err(|error| {
        OperationError::machine(error).hint("it is made by `ip netns add`; entering it takes root")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_a_lab() {
        let lab = Lab::plan("x", &["client", "server"]);
        let text: Vec<String> = lab.commands().iter().map(ToString::to_string).collect();
        assert_eq!(text[..3], ["ip netns add x-switch", "ip netns add x-client", "ip netns add x-server"]);
        assert!(
            text[3].contains("link add eth0 netns x-server type veth peer name port2 netns x-switch"),
            "{}",
            text[3]
        );
        assert!(text[6].contains("address add fd77::2/64 dev eth0 nodad"), "{}", text[6]);
        assert_eq!(text.len(), 7);
    }
}
