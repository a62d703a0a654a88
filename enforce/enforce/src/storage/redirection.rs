//! Redirection of new connections from a server's known address to a front, by a table of nftables.
//!
//! The table belongs to a process `nft -i` that reads its commands from a pipe of the proxy. The kernel deletes a table of
//! this kind (`flags owner`) when its process ends, and the process ends when the pipe closes: no rule survives the proxy,
//! not even when it is killed.

use crate::deployment::{Front, ServerStorage};
use machine::programs;
use model::OperationError;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

const NFT: &str = "nft";
/// Maximum wait for a change of the table.
const PATIENCE: Duration = Duration::from_secs(5);
/// Interval between two looks at the table.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
const WITHOUT: &str = "without it, let the server listen at another address and the proxy at the known one: \
    docs/guides/first-plan.md";

/// Addresses of one redirection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Route {
    /// The address that clients know.
    known: SocketAddr,
    /// The address that the proxy listens at.
    listen: SocketAddr,
}

/// New connections to known addresses reach the proxy for as long as this exists.
#[derive(Debug)]
pub struct Redirection {
    table: String,
    child: Child,
    commands: Option<ChildStdin>,
}

impl Redirection {
    /// Redirects the fronts that ask for it; `None` if there is none. The fronts have to listen already.
    ///
    /// # Errors
    /// When nftables is missing, or may not or cannot redirect.
    pub fn install(storage: &ServerStorage) -> Result<Option<Self>, OperationError> {
        let routes: Vec<Route> = storage.front.iter().filter_map(route).collect();
        if routes.is_empty() {
            return Ok(None);
        }
        let program = programs::find(NFT).ok_or_else(|| {
            OperationError::machine("`redirect` of a front needs nft")
                .hint(format_args!("install {}; {WITHOUT}", programs::package(NFT).unwrap_or(NFT)))
        })?;
        let table = format!("tailwright_proxy_{}", std::process::id());
        // In a process group of its own: Ctrl-C at a terminal must not end it before the proxy has drained.
        let mut child = Command::new(program)
            .arg("-i")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| OperationError::machine(format_args!("nft cannot be run: {error}")))?;
        let commands = child.stdin.take();
        let mut redirection = Self { table, child, commands };
        let rules = rules(&redirection.table, &routes);
        let sent = redirection.send(&rules);
        if sent.is_err() || !redirection.wait_for(|listed| count(listed) == routes.len()) {
            return Err(redirection.failure());
        }
        Ok(Some(redirection))
    }

    /// Lets new connections reach the server again. Redirected connections stay with the proxy until the value is
    /// dropped: the table keeps its chain, without which the kernel would stop to translate their packets.
    pub fn release(&mut self) {
        let flush = format!("flush chain inet {} known\n", self.table);
        if self.send(&flush).is_ok() {
            self.wait_for(|listed| count(listed) == 0);
        }
    }

    fn send(&mut self, text: &str) -> std::io::Result<()> {
        let Some(commands) = &mut self.commands else { return Ok(()) };
        commands.write_all(text.as_bytes())?;
        commands.flush()
    }

    /// Waits until the listed table is as wanted; false if it never was.
    fn wait_for(&self, is_wanted: impl Fn(&str) -> bool) -> bool {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            let program = programs::find(NFT).unwrap_or_else(|| NFT.into());
            let listed = Command::new(program).args(["list", "table", "inet", &self.table]).output();
            if listed.is_ok_and(|listed| {
                listed.status.success() && is_wanted(&String::from_utf8_lossy(&listed.stdout))
            }) {
                return true;
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
        false
    }

    /// Ends the process and returns its complaint.
    fn failure(&mut self) -> OperationError {
        self.end();
        let mut said = String::new();
        if let Some(errors) = &mut self.child.stderr {
            // An incomplete complaint is still one.
            let _ = errors.read_to_string(&mut said);
        }
        let why = said.lines().find(|line| line.contains("rror")).unwrap_or("the kernel has no such table");
        let hint = if why.contains("not permitted") {
            format!("run as root; {WITHOUT}")
        } else {
            format!("`redirect` needs netfilter, Linux 5.12 and nftables 1.0; {WITHOUT}")
        };
        OperationError::machine(format_args!("connections cannot be redirected by nft: {}", why.trim()))
            .hint(hint)
    }

    fn end(&mut self) {
        drop(self.commands.take());
        // The process ends at the end of its input.
        let _ = self.child.wait();
    }
}

impl Drop for Redirection {
    fn drop(&mut self) {
        self.end();
    }
}

/// Number of redirections in a listed table.
fn count(listed: &str) -> usize {
    listed.matches(" dnat ").count() + listed.matches(" redirect to ").count()
}

fn route(front: &Front) -> Option<Route> {
    let known = front.known_address().ok().flatten()?;
    let (listen, _) = *front.pairs().ok()?.first()?;
    Some(Route { known, listen })
}

/// Commands that make the table. Only the first packet of a connection counts: packets of connections that are older than
/// the table would otherwise be redirected when the kernel sees them for the first time, and break these connections.
fn rules(table: &str, routes: &[Route]) -> String {
    let mut text = format!(
        "add table inet {table} {{ flags owner; }}\n\
         add chain inet {table} known {{ type nat hook prerouting priority dstnat; }}\n"
    );
    for Route { known, listen } in routes {
        let family = if known.is_ipv6() { "ip6" } else { "ip" };
        let to = if listen.ip().is_unspecified() {
            format!("redirect to :{}", listen.port())
        } else {
            format!("dnat {family} to {listen}")
        };
        let _ = writeln!(
            text,
            "add rule inet {table} known iifname != \"lo\" {family} daddr {} tcp dport {} \
             tcp flags & (fin|syn|rst|ack) == syn {to}",
            known.ip(),
            known.port()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_first_packets_of_connections_from_elsewhere_are_redirected() {
        let route = |known: &str, listen: &str| Route {
            known: known.parse().unwrap(),
            listen: listen.parse().unwrap(),
        };
        let routes = [
            route("10.0.0.9:11211", "10.0.0.9:21211"),
            route("10.0.0.9:10809", "0.0.0.0:20809"),
            route("[fd00::9]:11211", "[fd00::9]:21211"),
        ];
        let text = rules("t", &routes);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5);
        let syn = "tcp flags & (fin|syn|rst|ack) == syn";
        for (line, part) in lines[2..].iter().zip([
            format!("ip daddr 10.0.0.9 tcp dport 11211 {syn} dnat ip to 10.0.0.9:21211"),
            format!("ip daddr 10.0.0.9 tcp dport 10809 {syn} redirect to :20809"),
            format!("ip6 daddr fd00::9 tcp dport 11211 {syn} dnat ip6 to [fd00::9]:21211"),
        ]) {
            assert!(line.ends_with(&part), "{line}");
            assert!(line.contains("iifname != \"lo\""), "{line}");
        }
        assert_eq!(count(&text), 3);
    }
}
