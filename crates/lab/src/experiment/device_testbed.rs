//! The machine of an experiment on a device: a host for each workload, and one that has the device and the proxy in front
//! of it.

use super::definition::{LabExperiment, SERVER};
use super::namespace_thread::{NamespaceThread, join, spawn_in};
use super::plan::ExperimentPlan;
use crate::nbd::{ExportedVolume, NbdServer, NbdServerConfig};
use enforce::command::{CommandRunner, Programs};
use enforce::deployment::Deployment;
use enforce::storage::{BaselineDiscipline, Proxy, ProxyHandle, ProxyOptions, ProxyReport};
use machine::virtual_network::VirtualNetwork;
use model::{OperationError, Policy};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::mpsc;
use units::Nanos;

/// What the names of an experiment's namespaces begin with. Those that an earlier experiment left are removed first.
const PREFIX: &str = "twrun";
/// The real-time priorities of device and proxy: above that of the load generator, so that it never makes them late.
const DEVICE_PRIORITY: u32 = 12;
const PROXY_PRIORITY: u32 = 11;
/// The size of each workload's volume in bytes.
const VOLUME_SIZE: u64 = 64 << 20;
/// How long before a completion the device stops sleeping and polls.
const SPIN: Nanos = Nanos(20_000);
/// How long the proxy lets requests end when it is stopped.
const DRAIN: Nanos = Nanos(1_000_000_000);
const PORT: u16 = 10809;

/// A proxy that runs on a thread of its own.
struct RunningProxy {
    remote: ProxyHandle,
    thread: NamespaceThread<ProxyReport>,
}

/// The machine as the experiment needs it; everything is removed when this is dropped.
pub(super) struct DeviceTestbed {
    lab: VirtualNetwork,
    proxy: Option<RunningProxy>,
    device: Option<NbdServer>,
}

impl DeviceTestbed {
    /// Makes a host for each of these workloads and one for the device, and starts the device.
    pub(super) fn new(workloads: &[String], realtime: bool) -> Result<Self, OperationError> {
        let hosts: Vec<&str> = workloads.iter().map(String::as_str).chain([SERVER]).collect();
        let lab = VirtualNetwork::create(|line, input| Programs.run_line(line, input), PREFIX, &hosts)?;
        let mut testbed = Self { lab, proxy: None, device: None };
        let exports =
            workloads.iter().map(|name| ExportedVolume { name: name.clone(), size: VOLUME_SIZE }).collect();
        let config = NbdServerConfig { model: LabExperiment::DEVICE, exports, spin: SPIN };
        let priority = realtime.then_some(DEVICE_PRIORITY);
        let started = join(spawn_in(testbed.netns(SERVER), priority, move || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT))?;
            // The thread of the device inherits namespace and priority of this one.
            NbdServer::start(listener, config, Box::new(|_| {}))
        }))?;
        testbed.device = Some(started.map_err(|error| {
            OperationError::machine(format_args!("the emulated SSD: {error}")).hint("see `ulimit -n`")
        })?);
        Ok(testbed)
    }

    /// The network namespace of a host.
    pub(super) fn netns(&self, host: &str) -> &str {
        &self.lab.host(host).expect("hosts are asked for by their names").netns
    }

    /// The address at which clients reach the volumes.
    pub(super) fn address(&self) -> SocketAddr {
        SocketAddr::new(self.ip(SERVER), PORT)
    }

    fn ip(&self, host: &str) -> IpAddr {
        self.lab.host(host).expect("hosts are asked for by their names").ipv4.into()
    }

    /// Starts a proxy between clients and device that enforces a policy, or a baseline with the policy's workloads.
    pub(super) fn start_proxy(
        &mut self,
        plan: &ExperimentPlan,
        policy: Policy,
        baseline: Option<BaselineDiscipline>,
        realtime: bool,
    ) -> Result<(), OperationError> {
        let deployment = self.deployment(plan.outstanding, &policy)?;
        let mut options = ProxyOptions::new(SERVER, deployment, Some(policy), plan.profile.clone());
        options.baseline = baseline;
        options.drain = DRAIN;
        // It shares the CPUs with generator and device; polling would take time from the generator, which has the lowest
        // priority.
        options.busy_poll_max = Nanos::ZERO;
        let (send, bound) = mpsc::channel();
        let thread = spawn_in(self.netns(SERVER), realtime.then_some(PROXY_PRIORITY), move || {
            let proxy = Proxy::bind(options)?;
            // Nobody waits for the address when the experiment has ended already.
            let _ = send.send(proxy.handle());
            proxy.run()
        });
        let thread = std::thread::spawn(move || join(thread).and_then(|served| served));
        match bound.recv() {
            Ok(remote) => self.proxy = Some(RunningProxy { remote, thread }),
            // The proxy ended before it listened, and its result says why.
            Err(_) => return join(thread).map(drop),
        }
        Ok(())
    }

    fn deployment(&self, outstanding: u32, policy: &Policy) -> Result<Deployment, OperationError> {
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
             [server.storage]\nprofile = \"-\"\noutstanding = {outstanding}\n\
             front = [{{ protocol = \"nbd\", listen = \"{address}\", forward = \"127.0.0.1\" }}]\n"
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

    /// Stops the proxy and waits for its end.
    ///
    /// # Errors
    /// When the proxy ended with an error.
    pub(super) fn stop_proxy(&mut self) -> Result<(), OperationError> {
        let Some(RunningProxy { remote, thread }) = self.proxy.take() else { return Ok(()) };
        remote.stop();
        join(thread).map(drop)
    }
}

impl Drop for DeviceTestbed {
    fn drop(&mut self) {
        // Whoever cares how the proxy ended has stopped it before.
        let _ = self.stop_proxy();
        drop(self.device.take());
        // What cannot be removed is removed by the next experiment.
        let _ = self.lab.remove(|line, input| Programs.run_line(line, input));
    }
}
