//! A server with a device, the proxy before it, and addresses from which clients come.

use crate::device::ServiceCost;
use crate::proxy::policy;
use crate::server::RunningServer;
use enforce::deployment::Deployment;
use enforce::storage::{Proxy, ProxyHandle, ProxyOptions, ProxyReport};
use model::OperationError;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread::JoinHandle;
use wire::Protocol;
use workload::device::StorageProfile;

/// Below the server, above the clients.
const PROXY_FIFO: u32 = 30;
/// The workload of the highest priority.
pub const GOLD: Ipv4Addr = Ipv4Addr::new(127, 0, 1, 1);
/// A workload below it, with 1 % of the device.
pub const SILVER: Ipv4Addr = Ipv4Addr::new(127, 0, 1, 2);
/// Rates and bursts in device time: enough for one request at a time, and little.
pub const GOLD_LIMIT: (f64, f64) = (1.0, 0.2);
pub const SILVER_LIMIT: (f64, f64) = (0.01, 0.03);

/// Returns an address that no entry names.
pub const fn stranger(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 2, number)
}

/// Settings of proxy and device.
#[derive(Debug, Clone, Copy)]
pub struct GroundSetting {
    pub outstanding: u32,
    pub channels: usize,
    pub cost: ServiceCost,
    /// Further fields of the storage.
    pub fields: &'static str,
}

impl GroundSetting {
    /// As few outstanding requests as are useful: one per channel of the device.
    pub const SMALL: Self =
        Self { outstanding: 4, channels: 4, cost: ServiceCost { base_ns: 500_000, byte_ns: 10 }, fields: "" };
    /// Two more than channels, one of them reserved.
    pub const LARGE: Self = Self {
        outstanding: 16,
        channels: 14,
        cost: ServiceCost { base_ns: 1_500_000, byte_ns: 10 },
        fields: "",
    };

    pub fn with(self, fields: &'static str) -> Self {
        Self { fields, ..self }
    }
}

/// Addresses for clients, by protocol.
#[derive(Debug, Clone, Copy)]
pub struct ProxyFronts([SocketAddr; 3]);

impl ProxyFronts {
    pub fn of(&self, protocol: Protocol) -> SocketAddr {
        self.0[index(protocol)]
    }
}

fn index(protocol: Protocol) -> usize {
    match protocol {
        Protocol::Nbd => 0,
        Protocol::Memcached => 1,
        Protocol::Nfs => 2,
        Protocol::Http1 | Protocol::Resp => unreachable!("no script speaks it"),
    }
}

/// Server and proxy; the proxy ends first.
pub struct Ground {
    pub fronts: ProxyFronts,
    pub handle: ProxyHandle,
    pub setting: GroundSetting,
    thread: Option<JoinHandle<Result<ProxyReport, OperationError>>>,
    pub server: RunningServer,
}

const BY_ADDRESS: &str = r#"
    [[client]]
    workload = "gold"
    host = "here"
    address = ["127.0.1.1"]
    [[client]]
    workload = "silver"
    host = "here"
    address = ["127.0.1.2"]"#;

/// Gold may use one channel, silver 1 % of one.
pub fn usual_policy() -> model::Policy {
    policy(&[("gold", 0, &[GOLD_LIMIT]), ("silver", 1, &[SILVER_LIMIT])])
}

/// Clients of gold and silver, by their addresses.
pub const fn usual_clients() -> &'static str {
    BY_ADDRESS
}

impl Ground {
    /// Starts gold and silver, by their addresses, under the usual policy.
    pub fn new(setting: GroundSetting) -> Self {
        let server = RunningServer::start(setting.channels, setting.cost);
        Self::before(server, setting, BY_ADDRESS, Some(usual_policy()))
    }

    pub fn before(
        server: RunningServer,
        setting: GroundSetting,
        clients: &str,
        policy: Option<model::Policy>,
    ) -> Self {
        let forward = server.addresses;
        let (proxy, handle) = bind(setting, forward, clients, policy);
        let fronts = ProxyFronts(proxy.addresses().try_into().expect("three fronts"));
        let thread = std::thread::spawn(move || {
            let _ = machine::realtime::fifo(PROXY_FIFO);
            proxy.run()
        });
        Self { fronts, handle, setting, thread: Some(thread), server }
    }

    /// Ends the proxy at once and starts another at another address before the same server.
    pub fn restart_proxy(&mut self, clients: &str, policy: Option<model::Policy>) {
        self.end_proxy();
        let (proxy, handle) = bind(self.setting, self.server.addresses, clients, policy);
        self.fronts = ProxyFronts(proxy.addresses().try_into().expect("three fronts"));
        self.handle = handle;
        self.thread = Some(std::thread::spawn(move || proxy.run()));
    }

    fn end_proxy(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    /// Returns the number of data requests of a workload that the proxy has counted.
    pub fn requests_of(&self, workload: &str) -> u64 {
        let status = self.handle.status().expect("the proxy runs");
        status.workloads.iter().filter(|of| of.workload == workload).map(|of| of.requests).sum()
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        self.end_proxy();
    }
}

fn bind(
    setting: GroundSetting,
    [nbd, memcached, nfs]: [SocketAddr; 3],
    clients: &str,
    policy: Option<model::Policy>,
) -> (Proxy, ProxyHandle) {
    let GroundSetting { outstanding, fields, .. } = setting;
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let fronts = [("nbd", any, nbd), ("memcached", any, memcached), ("nfs", any, nfs)];
    let fields = format!("outstanding = {outstanding}\n{fields}");
    let text = testkit::one_server_hosts(&fronts, &fields, clients);
    let deployment = Deployment::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let profile = StorageProfile::from_json(&setting.cost.profile()).expect("a profile by formula");
    let proxy = Proxy::bind(ProxyOptions::new("ssd", deployment, policy, profile));
    let proxy = proxy.unwrap_or_else(|error| panic!("{error}"));
    let handle = proxy.handle();
    (proxy, handle)
}
