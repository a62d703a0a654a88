//! Where an experiment is played: a host for each workload, and one that has the device and the proxy before it.

use super::analysis::SERVER;
use super::demand::Planned;
use crate::nbd::{Config, Export, Server};
use enforce::command::{CommandRunner, Programs};
use enforce::deployment::Deployment;
use enforce::storage::{BaselineDiscipline, Proxy, ProxyHandle, ProxyOptions, ProxyReport};
use machine::virtual_network::VirtualNetwork;
use model::{OperationError, Policy};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::mpsc;
use std::thread::JoinHandle;
use units::Nanos;

/// Namespaces of an experiment: what an earlier one left is removed first.
pub(super) const PREFIX: &str = "twrun";
/// Of the device and of the proxy: above the generator's, so that what they do is never late because of it.
const DEVICE_PRIORITY: u32 = 12;
const PROXY_PRIORITY: u32 = 11;
/// Of each workload.
const EXPORT_SIZE: u64 = 64 << 20;
/// How long before a completion the device stops sleeping.
const SPIN: Nanos = Nanos(20_000);
const PORT: u16 = 10809;

/// It is removed when this is dropped.
pub(super) struct Ground {
    lab: VirtualNetwork,
    workloads: usize,
    proxy: Option<(ProxyHandle, JoinHandle<Result<ProxyReport, OperationError>>)>,
    device: Option<Server>,
}

/// Runs on a thread that has entered a namespace and is real-time, if that is allowed.
pub(super) fn inside<T: Send + 'static>(
    netns: &str,
    priority: Option<u32>,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<Result<T, OperationError>> {
    let netns = netns.to_owned();
    std::thread::spawn(move || {
        machine::netns::enter(&netns).map_err(|error| {
            OperationError::machine(error).hint("it is made by `ip netns add`; entering it takes root")
        })?;
        if let Some(priority) = priority {
            let fault = |error| {
                OperationError::machine(error).hint("without it --no-realtime runs, and is often spoiled")
            };
            machine::realtime::fifo(priority).map_err(fault)?;
        }
        Ok(work())
    })
}

pub(super) fn joined<T>(handle: JoinHandle<Result<T, OperationError>>) -> Result<T, OperationError> {
    handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl Ground {
    /// Hosts, and the device on its own host.
    pub(super) fn new(planned: &Planned, names: &[String], realtime: bool) -> Result<Self, OperationError> {
        let hosts: Vec<&str> = names.iter().map(String::as_str).chain([SERVER]).collect();
        let lab = VirtualNetwork::create(|line, input| Programs.run_line(line, input), PREFIX, &hosts)?;
        let mut ground = Self { lab, workloads: names.len(), proxy: None, device: None };
        let exports = names.iter().map(|name| Export { name: name.clone(), size: EXPORT_SIZE }).collect();
        let config = Config { model: planned.experiment_device(), exports, spin: SPIN };
        let start = move || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT))?;
            // The device's thread has the priority of this one.
            Server::start(listener, config, Box::new(|_| {}))
        };
        let started = joined(inside(ground.netns(SERVER), realtime.then_some(DEVICE_PRIORITY), start))?;
        let fault = |error| {
            OperationError::machine(format_args!("the emulated SSD: {error}")).hint("see `ulimit -n`")
        };
        ground.device = Some(started.map_err(fault)?);
        Ok(ground)
    }

    pub(super) fn netns(&self, host: &str) -> &str {
        &self.lab.host(host).expect("hosts are asked for by their names").netns
    }

    /// Where clients find the volumes.
    pub(super) fn address(&self) -> SocketAddr {
        SocketAddr::new(self.ip(SERVER), PORT)
    }

    fn ip(&self, host: &str) -> IpAddr {
        self.lab.host(host).expect("hosts are asked for by their names").ipv4.into()
    }

    /// A proxy on the address of the host, before the device.
    pub(super) fn enforce(
        &mut self,
        planned: &Planned,
        policy: Policy,
        baseline: Option<BaselineDiscipline>,
        realtime: bool,
    ) -> Result<(), OperationError> {
        let deployment = self.deployment(planned, &policy)?;
        let mut options = ProxyOptions::new(SERVER, deployment, Some(policy), planned.profile.clone());
        options.baseline = baseline;
        options.drain = Nanos(1_000_000_000);
        // Generator and device share the CPUs with it, and the generator comes last.
        options.busy_poll_max = Nanos::ZERO;
        let (send, bound) = mpsc::channel();
        let serve = move || {
            let proxy = Proxy::bind(options)?;
            let _ = send.send(proxy.handle());
            proxy.run()
        };
        let thread = inside(self.netns(SERVER), realtime.then_some(PROXY_PRIORITY), serve);
        let thread = std::thread::spawn(move || joined(thread).and_then(|served| served));
        match bound.recv() {
            Ok(remote) => self.proxy = Some((remote, thread)),
            // It ended before it listened, and says why.
            Err(_) => return joined(thread).map(drop),
        }
        Ok(())
    }

    fn deployment(&self, planned: &Planned, policy: &Policy) -> Result<Deployment, OperationError> {
        let mut text = String::new();
        for host in &self.lab.hosts {
            text += &format!(
                "[[host]]\nname = \"{}\"\nnetns = \"{}\"\ndevice.eth0 = \"1Gbps\"\n",
                host.name, host.netns
            );
        }
        let address = self.ip(SERVER);
        text += &format!(
            "[[server]]\nname = \"{SERVER}\"\nhost = \"{SERVER}\"\naddress = [\"{address}\"]\nport = [{PORT}]\n\
             [server.storage]\nprofile = \"-\"\noutstanding = {}\n\
             front = [{{ protocol = \"nbd\", listen = \"{address}\", forward = \"127.0.0.1\" }}]\n",
            planned.outstanding
        );
        for workload in &policy.workloads {
            let address = self.ip(&workload.name);
            text += &format!(
                "[[client]]\nworkload = \"{name}\"\nhost = \"{name}\"\naddress = [\"{address}\"]\n",
                name = workload.name
            );
        }
        Deployment::parse(&text)
    }

    pub(super) fn workloads(&self) -> usize {
        self.workloads
    }

    /// Ends the proxy, and what it has to say.
    pub(super) fn finish(&mut self) -> Option<Result<ProxyReport, OperationError>> {
        let (remote, thread) = self.proxy.take()?;
        remote.stop();
        Some(joined(thread))
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = self.finish();
        drop(self.device.take());
        // What is left is removed by the next experiment.
        let _ = self.lab.remove(|line, input| Programs.run_line(line, input));
    }
}
