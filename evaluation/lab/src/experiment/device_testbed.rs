//! The machine of an experiment on a device: a host for each workload, and one for the device and the
//! proxy in front of it.

use super::baseline_queue::BaselineDiscipline;
use super::definition::{LabExperiment, SERVER};
use super::device_host::{DEVICE_PORT, DEVICE_PRIORITY, RunningProxy, start_device};
use super::plan::ExperimentPlan;
use crate::nbd::NbdServer;
use enforce::command::{CommandRunner, Programs};
use enforce::deployment::Deployment;
use enforce::storage::{BaselineQueue, ProxyOptions};
use machine::virtual_network::VirtualNetwork;
use model::{OperationError, Policy};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Prefix of the namespaces' names. Leftovers of an earlier experiment are removed first.
const PREFIX: &str = "twrun";
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
        let listen = (Ipv4Addr::LOCALHOST, DEVICE_PORT).into();
        let priority = realtime.then_some(DEVICE_PRIORITY);
        let netns = testbed.netns(SERVER);
        let device =
            start_device(netns, listen, LabExperiment::DEVICE, workloads, priority, "the emulated SSD")?;
        testbed.device = Some(device);
        Ok(testbed)
    }

    /// The network namespace of a host.
    pub(super) fn netns(&self, host: &str) -> &str {
        &self.lab.host(host).expect("hosts are asked for by their names").netns
    }

    /// The address at which clients reach the volumes.
    pub(super) fn address(&self) -> SocketAddr {
        SocketAddr::new(self.ip(SERVER), DEVICE_PORT)
    }

    fn ip(&self, host: &str) -> IpAddr {
        self.lab.host(host).expect("hosts are asked for by their names").ipv4.into()
    }

    /// Starts a proxy between clients and device that enforces a policy, or a baseline with the policy's workloads.
    pub(super) fn start_proxy(
        &mut self,
        plan: &ExperimentPlan,
        policy: Policy,
        baseline: Option<&BaselineDiscipline>,
        realtime: bool,
    ) -> Result<(), OperationError> {
        let deployment = self.deployment(plan.outstanding, &policy)?;
        let mut options = ProxyOptions::new(SERVER, deployment, Some(policy), plan.profile.clone());
        let queue = baseline.map(BaselineDiscipline::queue).transpose().map_err(OperationError::input)?;
        options.baseline = queue.map(|queue| Arc::new(queue) as Arc<dyn BaselineQueue>);
        self.proxy = RunningProxy::start(self.netns(SERVER), options, realtime)?;
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
            "[[server]]\nname = \"{SERVER}\"\nhost = \"{SERVER}\"\naddress = [\"{address}\"]\nport = [{DEVICE_PORT}]\n\
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
        self.proxy.take().map_or(Ok(()), RunningProxy::stop)
    }
}

impl Drop for DeviceTestbed {
    fn drop(&mut self) {
        // A caller that needs the proxy's result has stopped it before.
        let _ = self.stop_proxy();
        drop(self.device.take());
        // The next experiment removes leftovers.
        let _ = self.lab.remove(|line, input| Programs.run_line(line, input));
    }
}
