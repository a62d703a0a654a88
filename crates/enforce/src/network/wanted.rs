//! What every device should do under a policy: lanes with a level of priority, token buckets and flows.
//!
//! Limits at network-in are kept where requests leave the clients, those at network-out where replies leave the
//! server: traffic is held back where it comes from, before it shares a link (thesis §2.2.2: each end host
//! prioritises and limits what it sends, and switches go by the marks). Traffic that is nobody's goes last, unlimited.
//!
//! Not covered: clients that the deployment does not name. What they send is marked by nobody and goes last at
//! switches, but no limiter holds it.

use super::flow::Flow;
use crate::address::Prefix;
use crate::deployment::{Client, Deployment, Filters, Host, LEVELS, Server};
use model::{OperationError, Policy, PolicyWorkload, Stage};
use std::collections::BTreeMap;

/// What a host should do, and what to tell people about it.
#[derive(Debug, Clone, PartialEq)]
pub struct WantedHost {
    /// As in the deployment.
    pub host: Host,
    /// In order of name; only those that something is wanted of.
    pub devices: Vec<WantedDevice>,
}

/// What a device should do with what leaves by it.
#[derive(Debug, Clone, PartialEq)]
pub struct WantedDevice {
    /// Name.
    pub name: String,
    /// What it carries, bytes per second.
    pub link_bytes_per_s: f64,
    /// In the order of the policy.
    pub lanes: Vec<Lane>,
}

/// Traffic with a queue of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Lane {
    /// Unique on the device: `mail network-in`, or `level 3` on a switch.
    pub name: String,
    /// 0 is served first; below [`LEVELS`].
    pub level: usize,
    /// All hold at once; none is no limit.
    pub buckets: Vec<Bucket>,
    /// What belongs to it.
    pub flows: Vec<Flow>,
    /// The mark that it gets.
    pub mark: Option<u8>,
}

/// A token bucket in bytes of frames, Ethernet header included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bucket {
    /// Bytes per second.
    pub rate_bytes_per_s: f64,
    /// Bytes.
    pub burst_bytes: f64,
}

/// A host by host account, and what people should know.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// In the order of the deployment.
    pub hosts: Vec<WantedHost>,
    /// Where the network cannot do all that the policy says.
    pub warnings: Vec<String>,
}

/// What `policy` means on the hosts of `deployment`. An error is a contradiction between the two.
pub fn wanted(policy: &Policy, deployment: &Deployment) -> Result<Wanted, OperationError> {
    let levels = Levels::of(policy);
    let mut warnings = levels.warnings(policy);
    let mut lanes: BTreeMap<(&str, &str), Vec<Lane>> = BTreeMap::new();
    for workload in policy.workloads.iter().filter(|workload| workload.admitted) {
        let route = Route::of(workload, deployment)?;
        for (place, lane) in route.lanes(&levels, deployment)? {
            lanes.entry(place).or_default().push(lane);
        }
    }
    let hosts: Vec<WantedHost> =
        deployment.hosts.iter().map(|host| on_host(host, &lanes, deployment)).collect();
    for host in &hosts {
        check_apart(host)?;
        warnings.extend(host_warnings(host));
    }
    Ok(Wanted { hosts, warnings })
}

fn on_host(host: &Host, lanes: &BTreeMap<(&str, &str), Vec<Lane>>, deployment: &Deployment) -> WantedHost {
    let device = |(name, rate): (&String, &units::ByteRate)| {
        let lanes = match host.switch {
            true => (0..LEVELS).map(|level| switched(level, deployment.dscp[level])).collect(),
            false => lanes.get(&(host.name.as_str(), name.as_str()))?.clone(),
        };
        Some(WantedDevice { name: name.clone(), link_bytes_per_s: rate.bytes_per_sec(), lanes })
    };
    WantedHost { host: host.clone(), devices: host.device.iter().filter_map(device).collect() }
}

/// A level at a switch, by its mark.
fn switched(level: usize, dscp: u8) -> Lane {
    let flow = |ipv6| Flow { dscp: Some(dscp), ..Flow::any(ipv6) };
    Lane {
        name: format!("level {level}"),
        level,
        buckets: Vec::new(),
        flows: vec![flow(false), flow(true)],
        mark: None,
    }
}

/// Which level a priority of the policy becomes: the ranks of all that occur, the last ones together where there are
/// more than the kernel can tell apart. One table for all hosts, so that hosts and switches agree.
struct Levels(Vec<u32>);

impl Levels {
    fn of(policy: &Policy) -> Self {
        let workloads = policy.workloads.iter().filter(|workload| workload.admitted);
        let stages = [Stage::NetworkIn, Stage::NetworkOut];
        let mut priorities: Vec<u32> =
            workloads.flat_map(|w| stages.map(|stage| priority(w, stage))).collect();
        priorities.sort_unstable();
        priorities.dedup();
        Self(priorities)
    }

    fn level(&self, priority: u32) -> usize {
        let rank = self.0.binary_search(&priority).expect("the table has every priority of the policy");
        rank.min(LEVELS - 1)
    }

    /// Per server and stage, whose priorities fall together.
    fn warnings(&self, policy: &Policy) -> Vec<String> {
        let stages = policy.servers.iter().flat_map(|s| [(s, Stage::NetworkIn), (s, Stage::NetworkOut)]);
        stages.filter_map(|(server, stage)| self.merged(policy, &server.name, stage)).collect()
    }

    fn merged(&self, policy: &Policy, server: &str, stage: Stage) -> Option<String> {
        let last = self.0.get(LEVELS - 1..).unwrap_or_default();
        let here = policy.workloads.iter().filter(|w| w.admitted && w.server.as_deref() == Some(server));
        let here: Vec<(u32, &str)> = here.map(|w| (priority(w, stage), w.name.as_str())).collect();
        let here: Vec<_> = here.into_iter().filter(|(priority, _)| last.contains(priority)).collect();
        let differ = here.iter().any(|(priority, _)| *priority != here[0].0);
        let names: Vec<String> = here.iter().map(|(priority, name)| format!("{name} ({priority})")).collect();
        differ.then(|| {
            format!(
                "{server} {stage}: there are {LEVELS} levels of priority; these share the last: {}",
                names.join(", ")
            )
        })
    }
}

/// 0 is served first.
fn priority(workload: &PolicyWorkload, stage: Stage) -> u32 {
    match workload.priority_by_stage {
        Some(by_stage) => by_stage[stage as usize],
        None => workload.priority.unwrap_or(u32::MAX),
    }
}

/// An admitted workload, its server and where it comes from.
struct Route<'a> {
    workload: &'a PolicyWorkload,
    server: &'a Server,
    clients: Vec<&'a Client>,
}

/// A host and a device.
type Place<'a> = (&'a str, &'a str);

impl<'a> Route<'a> {
    fn of(workload: &'a PolicyWorkload, deployment: &'a Deployment) -> Result<Self, OperationError> {
        let name = &workload.name;
        let at = workload.server.as_deref().unwrap_or_default();
        let server = deployment.servers.iter().find(|server| server.name == at).ok_or_else(|| {
            OperationError::input(format_args!(
                "the policy places {name} on '{at}', which is no [[server]] of the hosts file"
            ))
            .hint("add it, with its host and addresses")
        })?;
        let clients: Vec<&Client> =
            deployment.clients.iter().filter(|client| client.workload == *name).collect();
        if clients.is_empty() {
            return Err(OperationError::input(format_args!("{name} is admitted, but the hosts file has no [[client]] of it")).hint("add where its requests come from: without limits on them nobody on its server has a guarantee"));
        }
        let route = Self { workload, server, clients };
        match route.clients.iter().find(|client| route.flows(client, Stage::NetworkIn).is_empty()) {
            Some(client) => Err(OperationError::input(format_args!(
                "{name} on {} and server {at} have no addresses of the same version of IP",
                client.host
            ))
            .hint("give both an IPv4 or both an IPv6 address")),
            None => Ok(route),
        }
    }

    fn lanes(
        &self,
        levels: &Levels,
        deployment: &'a Deployment,
    ) -> Result<Vec<(Place<'a>, Lane)>, OperationError> {
        let mut lanes = Vec::new();
        for (place, clients) in self.by_device(deployment) {
            let share = self.share(&clients, clients.len() == self.clients.len())?;
            let flows = clients.iter().flat_map(|client| self.flows(client, Stage::NetworkIn)).collect();
            lanes.push((place, self.lane(Stage::NetworkIn, share, flows, levels, deployment)));
        }
        let (host, device) = deployment
            .place(&self.server.host, self.server.device.as_deref())
            .expect("a deployment is checked");
        let mut flows: Vec<Flow> =
            self.clients.iter().flat_map(|client| self.flows(client, Stage::NetworkOut)).collect();
        flows.sort();
        flows.dedup();
        lanes.push((
            (host.name.as_str(), device),
            self.lane(Stage::NetworkOut, 1.0, flows, levels, deployment),
        ));
        Ok(lanes)
    }

    fn by_device(&self, deployment: &'a Deployment) -> BTreeMap<Place<'a>, Vec<&'a Client>> {
        let mut devices: BTreeMap<Place, Vec<&Client>> = BTreeMap::new();
        for &client in &self.clients {
            let place = deployment.place(&client.host, client.device.as_deref());
            let (host, device) = place.expect("a deployment is checked");
            devices.entry((&host.name, device)).or_default().push(client);
        }
        devices
    }

    /// The part of the limits that a device with these clients has.
    fn share(&self, clients: &[&Client], alone: bool) -> Result<f64, OperationError> {
        let name = &self.workload.name;
        let total: f64 = self.clients.iter().filter_map(|client| client.share).sum();
        if total > 1.0 + 1e-9 {
            return Err(OperationError::input(format_args!("the shares of {name} add up to {total}"))
                .hint("together they may be 1 at most"));
        }
        if alone && clients.iter().all(|client| client.share.is_none()) {
            return Ok(1.0);
        }
        let shares: Option<f64> = clients.iter().map(|client| client.share).sum();
        shares.ok_or_else(|| {
            OperationError::input(format_args!(
                "{name} has clients on several devices, which cannot share its token buckets"
            ))
            .hint("give each of its [[client]] entries a share; they may add up to 1")
        })
    }

    fn lane(
        &self,
        stage: Stage,
        share: f64,
        flows: Vec<Flow>,
        levels: &Levels,
        deployment: &Deployment,
    ) -> Lane {
        let limits = self.workload.limits.iter().filter(|limit| limit.stage == stage);
        let bucket = |limit: &model::StageLimit| Bucket {
            rate_bytes_per_s: share * limit.rate_per_s,
            burst_bytes: share * limit.burst_work,
        };
        let level = levels.level(priority(self.workload, stage));
        Lane {
            name: format!("{} {stage}", self.workload.name),
            level,
            buckets: limits.map(bucket).collect(),
            flows,
            mark: Some(deployment.dscp[level]),
        }
    }

    /// Every combination of addresses of the same version and of ports.
    fn flows(&self, client: &Client, stage: Stage) -> Vec<Flow> {
        let server_ports =
            if client.server_port.is_empty() { &self.server.port } else { &client.server_port };
        let mut flows = Vec::new();
        for &server in &self.server.address {
            let same = |address: &&Prefix| address.is_ipv6() == server.is_ipv6();
            let clients: Vec<Option<Prefix>> = if client.address.is_empty() {
                vec![None]
            } else {
                client.address.iter().filter(same).map(|address| Some(*address)).collect()
            };
            for address in clients {
                for (port, server_port) in pairs(&client.port, server_ports) {
                    let sides = [(address, port), (Some(server), server_port)];
                    flows.push(self.flow(client, stage, sides));
                }
            }
        }
        flows
    }

    fn flow(&self, client: &Client, stage: Stage, sides: [(Option<Prefix>, Option<u16>); 2]) -> Flow {
        let [requester, server] = sides;
        let (from, to) = if stage == Stage::NetworkIn { (requester, server) } else { (server, requester) };
        let cgroup = client.cgroup.as_ref().filter(|_| stage == Stage::NetworkIn);
        Flow {
            ipv6: server.0.is_some_and(Prefix::is_ipv6),
            from: from.0,
            to: to.0,
            protocol: (from.1.or(to.1)).map(|_| self.server.protocol),
            from_port: from.1,
            to_port: to.1,
            dscp: client.dscp,
            cgroup: cgroup.map(|path| path.trim_matches('/').to_owned()),
        }
    }
}

/// All combinations; an empty list is any.
fn pairs(a: &[u16], b: &[u16]) -> Vec<(Option<u16>, Option<u16>)> {
    let options = |ports: &[u16]| -> Vec<Option<u16>> {
        if ports.is_empty() { vec![None] } else { ports.iter().copied().map(Some).collect() }
    };
    let b = options(b);
    options(a).into_iter().flat_map(|a| b.iter().map(move |b| (a, *b)).collect::<Vec<_>>()).collect()
}

/// Whether workloads on a device can be told apart, in the language of its filters.
fn check_apart(host: &WantedHost) -> Result<(), OperationError> {
    for device in &host.devices {
        let place = format!("{} {}", host.host.name, device.name);
        let mut owners: BTreeMap<&Flow, &str> = BTreeMap::new();
        for lane in &device.lanes {
            for flow in &lane.flows {
                if let Some(other) = owners.insert(flow, &lane.name).filter(|other| *other != lane.name) {
                    return Err(OperationError::input(format_args!(
                        "{place}: traffic of {other} and of {} looks the same: {}",
                        lane.name,
                        flow.nft()
                    ))
                    .hint("tell them apart by address, port, server_port, dscp or (for requests) cgroup"));
                }
                if host.host.filters == Filters::Tc && flow.u32().is_none() {
                    return Err(OperationError::input(format_args!(
                        "{place}: filters = \"tc\" cannot tell the cgroup of {}",
                        lane.name
                    ))
                    .hint("use filters = \"nft\", or an address or port"));
                }
            }
        }
    }
    Ok(())
}

fn host_warnings(host: &WantedHost) -> Vec<String> {
    let mut warnings = Vec::new();
    if host.host.filters == Filters::Tc && !host.host.switch && !host.devices.is_empty() {
        warnings
            .push(format!("{}: filters = \"tc\" sets no DSCP marks: switches serve it last", host.host.name));
    }
    for device in &host.devices {
        let total: f64 = device.lanes.iter().filter_map(slowest).sum();
        if total > device.link_bytes_per_s * (1.0 + 1e-9) {
            warnings.push(format!(
                "{} {}: limits add up to {total:.0} bytes/s, the link has {:.0}",
                host.host.name, device.name, device.link_bytes_per_s
            ));
        }
    }
    warnings
}

/// The rate that a lane has in the long run; `None` without limits.
fn slowest(lane: &Lane) -> Option<f64> {
    lane.buckets.iter().map(|bucket| bucket.rate_bytes_per_s).min_by(f64::total_cmp)
}
