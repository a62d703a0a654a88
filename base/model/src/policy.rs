//! The policy, which planning passes to enforcement, simulation and verification, and its file format.
//!
//! A policy is read and built in only one way each, so every [`Policy`] has been checked.

mod conditions;
mod enforcement;
mod error;
mod limit;
mod soundness;
mod workload;

pub use conditions::{
    Condition, ConditionDifference, ConditionRow, ConditionUnit, ConditionValue, Safety, ServerConditions,
    UnsafeDirection,
};
pub use enforcement::{CHANNELS_MAX, LINK_BURST_S, ServerEnforcement};
pub use error::PolicyError;
pub(crate) use error::{POLICY_FORMAT, POLICY_VERSION};
use error::{
    READ_VERSIONS, UNVERSIONED_FORMAT, VERSION_WITH_HOSTS, VERSION_WITH_SLOS, VERSION_WITHOUT_ALLOWANCES,
};
pub use limit::{RateLimit, StageLimit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;
use workload::PolicyWorkloadDocument;
pub use workload::{PolicyClient, PolicyHost, PolicyPlacement, PolicyServer, PolicySlo, PolicyWorkload};

/// Number of priority levels of workloads: HTB has eight, and the last is for traffic without a workload.
pub const PRIORITY_LEVELS: usize = 7;

/// Models whose bounds are for a percentile, so that some requests may take longer.
const PERCENTILE_MODELS: [&str; 5] =
    ["probabilistic", "replayed", "calibrated", "published-snc", "snc-by-stage"];

/// The plan to enforce and simulate: the server, the priority and the rate limits of each workload at
/// every stage.
///
/// Creating a policy, and reading one by [`Policy::from_json`] or as a part of another document, checks
/// that it is sound. The format is known, names are unique, and admitted workloads have a server and a
/// priority. No limit exceeds the capacity of its stage, and redundant values agree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "PolicyDocument", into = "PolicyDocument")]
pub struct Policy {
    /// Planning method, such as `tailwright` or `knee`.
    pub policy_name: String,
    /// Servers in use, in the order in which they were filled.
    pub servers: Vec<PolicyServer>,
    /// Hosts of clients whose links bounds count; empty if they count none.
    pub hosts: Vec<PolicyHost>,
    /// Every requested workload, admitted or not, in the order of the request.
    pub workloads: Vec<PolicyWorkload>,
    /// True if read from a document of version 1 for several channels: its bursts include the allowances.
    is_of_version_1: bool,
}

impl Policy {
    /// Creates a policy decided by the planning method `policy_name`.
    ///
    /// # Errors
    ///
    /// When a name is repeated, or a promise to a workload cannot be enforced.
    pub fn new(
        method: impl Into<String>,
        servers: Vec<PolicyServer>,
        workloads: Vec<PolicyWorkload>,
    ) -> Result<Self, PolicyError> {
        Self::with_hosts(method, servers, Vec::new(), workloads)
    }

    /// Creates a policy whose bounds count the links of client hosts.
    ///
    /// # Errors
    ///
    /// As [`Policy::new`], or when a workload is on a host that is not there.
    pub fn with_hosts(
        method: impl Into<String>,
        servers: Vec<PolicyServer>,
        hosts: Vec<PolicyHost>,
        workloads: Vec<PolicyWorkload>,
    ) -> Result<Self, PolicyError> {
        soundness::check(&servers, &hosts, &workloads)?;
        Ok(Self { policy_name: method.into(), servers, hosts, workloads, is_of_version_1: false })
    }

    /// Returns the admitted workloads with the latencies of their SLOs, for services that serve these
    /// classes of requests by deadline. Workloads without a guarantee are not among them.
    pub fn slo_latencies(&self) -> impl Iterator<Item = (&str, Duration)> {
        let admitted = self.workloads.iter().filter(|workload| workload.admitted);
        admitted.map(|workload| (workload.name.as_str(), Duration::from_secs_f64(workload.slo.latency.0)))
    }

    /// Returns the terms of use of the server with this name, if the bounds of its workloads depend on
    /// them.
    pub fn enforcement_of(&self, server: &str) -> Option<&ServerEnforcement> {
        self.servers.iter().find(|known| known.name == server)?.enforcement.as_ref()
    }

    /// Returns the stated assumptions of the bounds of the workloads on this server.
    pub fn assumed_conditions(&self, server: &str) -> ServerConditions {
        let Some(known) = self.servers.iter().find(|known| known.name == server) else {
            return ServerConditions::default();
        };
        // If the policy does not state the profile's content, its name has to do, but only on a server
        // with bounds.
        let is_named = known.storage_profile_hash.is_none() && known.enforcement.is_some();
        let named = Some(known.storage_profile.as_str()).filter(|name| is_named && !name.is_empty());
        let stated = ServerConditions::default()
            .with(Condition::Network, Some(known.network_bytes_per_s))
            .with(Condition::ProfileName, named)
            .with(Condition::ProfileContent, known.storage_profile_hash.as_deref());
        let Some(used) = known.enforcement else { return stated };
        stated
            .with(Condition::Channels, Some(used.channels))
            .with(Condition::Outstanding, Some(used.outstanding))
            .with(Condition::BusyPlaces, Some(used.channels))
            .with(Condition::BestEffortPlaces, Some(used.outstanding - used.reserve))
            .with(Condition::Beside, Some(used.channels.saturating_sub(1)))
            .with(Condition::BytesAtDevice, Some(f64::INFINITY))
            .with(Condition::Batch, Some(1_u32))
            .with(Condition::BestEffortRequest, Some(used.best_effort_request_s))
            .with(Condition::Packet, Some(used.packet_bytes))
            .with(Condition::ProxyTime, Some(used.proxy_s))
            .with(Condition::Levels, Some(self.levels_on(server)))
    }

    /// Returns the number of priority levels on a server, at the stage with the most.
    fn levels_on(&self, server: &str) -> u32 {
        let levels = |stage: usize| {
            let placed = self.workloads.iter().filter(|workload| workload.server.as_deref() == Some(server));
            let level = |workload: &PolicyWorkload| {
                workload.priority_by_stage.map(|levels| levels[stage]).or(workload.priority)
            };
            placed.filter_map(level).collect::<BTreeSet<u32>>().len()
        };
        u32::try_from((0..3).map(levels).max().unwrap_or(0)).unwrap_or(u32::MAX)
    }

    /// Returns true if the policy promises a latency to a workload on this server.
    pub fn promises_on(&self, server: &str) -> bool {
        let mut placed = self.workloads.iter().filter(|workload| workload.server.as_deref() == Some(server));
        placed.any(|workload| workload.admitted && workload.bound_s.is_some())
    }

    /// Returns true if the bounds on a server hold for every request: they take the server's use into
    /// account, and the planning model does not promise a percentile.
    pub fn covers_every_request(&self, server: &str) -> bool {
        let is_percentile = PERCENTILE_MODELS.contains(&self.policy_name.as_str());
        !is_percentile && self.enforcement_of(server).is_some() && !self.has_outdated_bounds(server)
    }

    /// Returns true if the bounds on a server do not hold for all traffic within the limits. Documents of
    /// version 1 include the enforcers' allowance in the limit itself, so a workload that uses it may
    /// exceed its bound. A device that serves one request at a time needs no allowance.
    pub fn has_outdated_bounds(&self, server: &str) -> bool {
        self.is_of_version_1 && self.enforcement_of(server).is_some_and(|used| used.channels > 1)
    }

    /// Returns true if a device serves several requests at a time, so that enforcers need allowances.
    fn has_several_channels(&self) -> bool {
        let several = |used: &ServerEnforcement| used.channels > 1;
        self.servers.iter().filter_map(|server| server.enforcement.as_ref()).any(several)
    }

    /// Reads and checks the JSON of a policy file.
    ///
    /// # Errors
    ///
    /// When the text is not a policy, is one of another format, repeats a name, or promises what cannot be
    /// enforced.
    pub fn from_json(text: &str) -> Result<Self, PolicyError> {
        serde_json::from_str::<PolicyDocument>(text).map_err(PolicyError::NotAPolicy)?.try_into()
    }
}

/// A policy as written, before it is checked.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(expecting = "struct Policy")]
struct PolicyDocument {
    #[schemars(extend("const" = POLICY_FORMAT))]
    format: String,
    #[schemars(with = "u32", extend("enum" = READ_VERSIONS))]
    version: Option<u32>,
    /// Planning method, such as `tailwright` or `knee`.
    policy_name: String,
    /// Servers in use, in the order in which they were filled.
    servers: Vec<PolicyServer>,
    /// Hosts of clients whose links bounds count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<PolicyHost>,
    /// Every requested workload, admitted or not.
    workloads: Vec<PolicyWorkloadDocument>,
}

fn has_further_slos(workloads: &[PolicyWorkload]) -> bool {
    workloads.iter().any(|workload| !workload.further_slos.is_empty())
}

impl From<Policy> for PolicyDocument {
    fn from(policy: Policy) -> Self {
        let version = match policy {
            Policy { is_of_version_1: true, .. } => VERSION_WITHOUT_ALLOWANCES,
            Policy { ref workloads, .. } if has_further_slos(workloads) => VERSION_WITH_SLOS,
            Policy { ref hosts, .. } if !hosts.is_empty() => VERSION_WITH_HOSTS,
            _ => POLICY_VERSION,
        };
        let format = POLICY_FORMAT.to_owned();
        let Policy { policy_name, servers, hosts, workloads, .. } = policy;
        let workloads = workloads.into_iter().map(Into::into).collect();
        Self { format, version: Some(version), policy_name, servers, hosts, workloads }
    }
}

impl TryFrom<PolicyDocument> for Policy {
    type Error = PolicyError;

    fn try_from(document: PolicyDocument) -> Result<Self, PolicyError> {
        let PolicyDocument { format, version, policy_name, servers, hosts, workloads } = document;
        let is_of_version_1 = match (format.as_str(), version) {
            (UNVERSIONED_FORMAT, None) => true,
            (POLICY_FORMAT, Some(known)) if READ_VERSIONS.contains(&known) => {
                known == VERSION_WITHOUT_ALLOWANCES
            }
            _ => return Err(PolicyError::UnknownFormat(format, version)),
        };
        let mut sound = Vec::new();
        for workload in workloads {
            sound.push(workload.try_into()?);
        }
        if !hosts.is_empty() && version < Some(VERSION_WITH_HOSTS) {
            return Err(PolicyError::HostsBeforeVersion4);
        }
        if has_further_slos(&sound) && version < Some(VERSION_WITH_SLOS) {
            return Err(PolicyError::SlosBeforeVersion5);
        }
        let policy = Self::with_hosts(policy_name, servers, hosts, sound)?;
        let mut limits = policy.workloads.iter().flat_map(|workload| &workload.limits);
        if is_of_version_1 && limits.any(|limit| limit.allowance_work > 0.0) {
            return Err(PolicyError::AllowanceInVersion1);
        }
        let is_of_version_1 = is_of_version_1 && policy.has_several_channels();
        Ok(Self { is_of_version_1, ..policy })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PerStage, Stage};

    fn workload(name: &str) -> PolicyWorkload {
        let limit = RateLimit { rate: 0.25, burst: 0.5 };
        let limits = Stage::ALL.map(|stage| StageLimit::new(stage, limit, 1e8)).to_vec();
        let priority = PerStage::from_fn(|_| 2);
        let placement = PolicyPlacement { server: "ssd-1".into(), priority, bound_s: Some(0.125), limits };
        PolicyWorkload::admitted(name, "99.9% < 200ms".parse().unwrap(), placement)
    }

    fn policy() -> Policy {
        let server = PolicyServer {
            name: "ssd-1".into(),
            class: "ssd".into(),
            network_bytes_per_s: 1e8,
            storage_profile: "x".into(),
            storage_profile_hash: None,
            enforcement: None,
        };
        let refused = PolicyWorkload::refused("b", "99% < 1s".parse().unwrap(), "no room");
        Policy::new("tailwright", vec![server], vec![workload("a"), refused]).expect("it is sound")
    }

    #[test]
    fn the_file_has_the_slo_in_three_forms() {
        let text = serde_json::to_string(&policy()).unwrap();
        assert_eq!(
            text,
            concat!(
                r#"{"format":"tailwright.policy","version":3,"policy_name":"tailwright","servers":[{"name":"ssd-1","class":"#,
                r#""ssd","network_bytes_per_s":100000000.0,"storage_profile":"x"}],"workloads":[{"name":"a","#,
                r#""admitted":true,"server":"ssd-1","priority":2,"slo":"99.9% < 200ms","slo_percentile":99.9,"#,
                r#""slo_s":0.2,"bound_s":0.125,"limits":[{"stage":"network-in","rate":0.25,"burst":0.5,"#,
                r#""rate_per_s":25000000.0,"burst_work":50000000.0},{"stage":"storage","rate":0.25,"burst":0.5,"#,
                r#""rate_per_s":0.25,"burst_work":0.5},{"stage":"network-out","rate":0.25,"burst":0.5,"#,
                r#""rate_per_s":25000000.0,"burst_work":50000000.0}]},{"name":"b","admitted":false,"server":null,"#,
                r#""priority":null,"slo":"99% < 1s","slo_percentile":99.0,"slo_s":1.0,"bound_s":null,"limits":[],"#,
                r#""refusal":"no room"}]}"#
            )
        );
        assert_eq!(Policy::from_json(&text).unwrap(), policy());
    }

    #[test]
    fn deadlines_are_those_of_the_slos_of_admitted_workloads() {
        let mut policy = policy();
        let slos = |policy: &Policy| -> Vec<(String, Duration)> {
            policy.slo_latencies().map(|(name, latency)| (name.to_owned(), latency)).collect()
        };
        assert_eq!(slos(&policy), [("a".to_owned(), Duration::from_millis(200))]);
        policy.workloads[0].slo = "99% < 1e9s".parse().unwrap();
        assert_eq!(slos(&policy)[0].1, Duration::from_secs(1_000_000_000));
    }

    #[test]
    fn files_without_a_version_are_read() {
        let text = serde_json::to_string(&policy()).unwrap();
        let old =
            text.replace(r#""format":"tailwright.policy","version":3"#, r#""format":"tailwright-policy-1""#);
        assert_ne!(old, text);
        assert_eq!(Policy::from_json(&old).unwrap(), policy());
    }

    #[test]
    fn stages_that_differ_are_written() {
        let mut priority = PerStage::from_fn(|_| 1);
        priority[Stage::Storage] = 0;
        let placement = PolicyPlacement { server: "s".into(), priority, bound_s: None, limits: Vec::new() };
        let workload = PolicyWorkload::admitted("a", "99% < 1s".parse().unwrap(), placement);
        assert_eq!((workload.priority, workload.priority_by_stage), (Some(1), Some([1, 0, 1])));
    }

    #[test]
    fn every_way_of_reading_checks() {
        let text = serde_json::to_string(&policy()).unwrap();
        let mut repeated = policy();
        repeated.workloads.push(workload("a"));
        let mut servers = policy();
        servers.servers.push(servers.servers[0].clone());
        for (text, message) in [
            ("{".to_owned(), "not a policy: EOF while parsing an object at line 1 column 1"),
            (
                text.replace("tailwright.policy", "tailwright.other"),
                "the format is 'tailwright.other', version 3, expected 'tailwright.policy', version 1, 2, 3, 4 or 5",
            ),
            (
                text.replace("\"version\":3,", ""),
                "the format is 'tailwright.policy', expected 'tailwright.policy', version 1, 2, 3, 4 or 5",
            ),
            (
                text.replace("\"version\":3,", "\"version\":6,"),
                "the format is 'tailwright.policy', version 6, expected 'tailwright.policy', version 1, 2, 3, 4 or 5",
            ),
            (serde_json::to_string(&repeated).unwrap(), "workload 'a' is given twice"),
            (serde_json::to_string(&servers).unwrap(), "server 'ssd-1' is given twice"),
            (
                text.replacen("\"rate\":0.25", "\"rate\":1.25", 1),
                "workload 'a': limits[0] at network-in: rate is 1.25, expected a fraction of the stage's capacity, \
                 above 0 and at most 1",
            ),
        ] {
            assert_eq!(Policy::from_json(&text).unwrap_err().to_string(), message);
            assert!(serde_json::from_str::<Policy>(&text).is_err(), "{message}");
        }
    }

    /// Asserts that the document with `from` replaced by `to` is refused with the words `said`.
    fn assert_refused(text: &str, from: &str, to: &str, said: &str) {
        assert!(text.contains(from), "{from}");
        let error = Policy::from_json(&text.replacen(from, to, 1)).expect_err(to).to_string();
        assert!(error.contains(said), "{to}: {error}");
    }

    /// Every refusal in docs/reference/policy.md, with the place and the expected value.
    #[test]
    fn what_cannot_be_enforced_is_refused() {
        let text = serde_json::to_string(&policy()).unwrap();
        for (from, to, said) in [
            (
                "\"rate_per_s\":25000000.0",
                "\"rate_per_s\":-1",
                "network-in: rate_per_s is -1, expected a number above 0",
            ),
            ("\"rate_per_s\":25000000.0", "\"rate_per_s\":0", "rate_per_s is 0"),
            ("\"rate_per_s\":25000000.0", "\"rate_per_s\":1e300", "expected 25000000, which is rate times"),
            ("\"rate_per_s\":25000000.0", "\"rate_per_s\":1e999", "number out of range"),
            (
                "\"rate_per_s\":0.25",
                "\"rate_per_s\":0.5",
                "limits[1] at storage: rate_per_s is 0.5, expected 0.25",
            ),
            ("\"rate\":0.25", "\"rate\":0", "rate is 0"),
            ("\"burst\":0.5", "\"burst\":-0.5", "burst is -0.5"),
            ("\"burst\":0.5", "\"burst\":0", "burst_work is 50000000, expected 0, which is burst times"),
            ("\"burst\":0.5", "\"burst\":1e10", "expected 0 or more seconds, and at most 1e9"),
            ("\"burst_work\":50000000.0", "\"burst_work\":-5", "burst_work is -5"),
            ("\"burst_work\":50000000.0", "\"burst_work\":100", "burst_work is 100, expected 50000000"),
            ("\"priority\":2", "\"priority\":null", "priority is null, expected the priority of an admitted"),
            ("\"server\":\"ssd-1\"", "\"server\":null", "server is null"),
            ("\"bound_s\":0.125", "\"bound_s\":-0.125", "bound_s is -0.125, expected 0 or more"),
            ("\"slo_s\":0.2", "\"slo_s\":-0.2", "slo_s is -0.2, expected 0.2 as in slo, 99.9% < 200ms"),
            ("\"slo_percentile\":99.9", "\"slo_percentile\":9.9", "slo_percentile is 9.9"),
            ("s\":100000000.0", "s\":0", "server 'ssd-1': network_bytes_per_s is 0"),
            ("\"bound_s\":0.125", "\"bound_s\":0.125,\"largest_request\":0", "largest_request is 0"),
        ] {
            assert_refused(&text, from, to, said);
        }
    }

    #[test]
    fn how_a_server_is_used_is_read_and_checked() {
        let enforcement = ServerEnforcement {
            channels: 2,
            outstanding: 4,
            beside: 3,
            reserve: 1,
            best_effort_request_s: 0.005,
            packet_bytes: 65536.0,
            link_burst_s: Some(0.0005),
            proxy_s: 0.0002,
        };
        let mut used = policy();
        used.servers[0].enforcement = Some(enforcement);
        let text = serde_json::to_string(&used).unwrap();
        assert_eq!(Policy::from_json(&text).unwrap(), used);
        for (from, to, said) in [
            ("\"channels\":2", "\"channels\":0", "channels is 0, expected 1 to 4096"),
            ("\"channels\":2", "\"channels\":4097", "channels is 4097, expected 1 to 4096"),
            (
                "\"outstanding\":4",
                "\"outstanding\":1",
                "outstanding is 1, expected at least as many as channels",
            ),
            ("\"beside\":3", "\"beside\":5", "beside is 5"),
            ("\"beside\":3", "\"beside\":0", "beside is 0, expected at least one fewer than channels"),
            ("\"reserve\":1", "\"reserve\":4", "server 'ssd-1': enforcement: reserve is 4, expected fewer"),
            ("request_s\":0.005", "request_s\":-1", "best_effort_request_s is -1"),
            ("packet_bytes\":65536.0", "packet_bytes\":-1", "packet_bytes is -1"),
            ("link_burst_s\":0.0005", "link_burst_s\":-1", "link_burst_s is -1"),
            ("proxy_s\":0.0002", "proxy_s\":-1", "proxy_s is -1"),
        ] {
            assert_refused(&text, from, to, said);
        }
    }

    /// Returns the policy with a device of this many channels.
    fn on_channels(channels: u32) -> Policy {
        let mut used = policy();
        used.servers[0].enforcement = Some(ServerEnforcement {
            channels,
            outstanding: channels,
            beside: channels,
            reserve: 0,
            best_effort_request_s: 0.005,
            packet_bytes: 65536.0,
            link_burst_s: Some(0.0005),
            proxy_s: 0.0,
        });
        used
    }

    #[test]
    fn version_1_with_several_channels_is_outdated_and_stays_so() {
        let text = serde_json::to_string(&on_channels(4)).unwrap();
        let new = Policy::from_json(&text).unwrap();
        assert!(text.contains("\"version\":3") && new.covers_every_request("ssd-1"), "{text}");
        let old = text.replace("\"version\":3", "\"version\":1");
        let read = Policy::from_json(&old).unwrap();
        assert!(read.has_outdated_bounds("ssd-1"));
        assert!(!read.covers_every_request("ssd-1"));
        assert_eq!(serde_json::to_string(&read).unwrap(), old);
    }

    /// The summary of plans by the calibrated model has other fields since version 3; the policy is the same.
    #[test]
    fn version_2_is_read_with_the_summary_of_its_time() {
        let mut allowing = on_channels(4);
        allowing.workloads[0].limits[2] = allowing.workloads[0].limits[2].with_allowance(0.25, 1e8);
        let text = serde_json::to_string(&allowing).unwrap();
        let summary = r#""servers_used":1,"calibration":{"coverage":95.0,"window_s":300.0,"workloads":[]}}"#;
        let old = format!("{},{summary}", text.strip_suffix('}').unwrap());
        let old = old.replace("\"version\":3", "\"version\":2");
        let read = Policy::from_json(&old).unwrap();
        assert_eq!(read, allowing);
        assert!(!read.has_outdated_bounds("ssd-1") && read.covers_every_request("ssd-1"));
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }

    #[test]
    fn version_1_with_one_channel_is_as_good_as_ever() {
        let text = serde_json::to_string(&on_channels(1)).unwrap();
        let read = Policy::from_json(&text.replace("\"version\":3", "\"version\":1")).unwrap();
        assert_eq!(read, on_channels(1));
        assert!(!read.has_outdated_bounds("ssd-1") && read.covers_every_request("ssd-1"));
    }

    #[test]
    fn an_allowance_is_read_checked_and_is_not_of_version_1() {
        let mut allowing = policy();
        allowing.workloads[0].limits[2] = allowing.workloads[0].limits[2].with_allowance(0.25, 1e8);
        let text = serde_json::to_string(&allowing).unwrap();
        assert!(text.contains(r#""allowance":0.25,"allowance_work":25000000.0"#), "{text}");
        assert_eq!(Policy::from_json(&text).unwrap(), allowing);
        assert!((allowing.workloads[0].limits[2].bucket_work() - 7.5e7).abs() < 1.0);
        for (from, to, said) in [
            ("\"allowance\":0.25", "\"allowance\":-1", "network-out: allowance is -1"),
            (
                "\"allowance_work\":25000000.0",
                "\"allowance_work\":5",
                "allowance_work is 5, expected 25000000",
            ),
            ("\"version\":3", "\"version\":1", "a limit has an allowance, expected version 2 or later"),
        ] {
            assert_refused(&text, from, to, said);
        }
    }

    #[test]
    fn client_hosts_are_written_read_and_checked() {
        let mut limits = Vec::new();
        for stage in [Stage::NetworkIn, Stage::NetworkOut] {
            limits.push(StageLimit::new(stage, RateLimit { rate: 0.5, burst: 0.25 }, 1e6));
        }
        let client = PolicyClient {
            host: "app".into(),
            priority: 1,
            limits,
            request_delay_s: 0.03125,
            answer_delay_s: 0.0625,
        };
        let Policy { policy_name, servers, mut workloads, .. } = policy();
        workloads[0] = workloads[0].clone().with_client(Some(client));
        let hosts = vec![PolicyHost { name: "app".into(), network_bytes_per_s: 1e6 }];
        let with_hosts = Policy::with_hosts(policy_name, servers, hosts, workloads).unwrap();
        let rates: Vec<f64> =
            with_hosts.workloads[0].limits_at(Stage::NetworkIn).map(|limit| limit.rate_per_s).collect();
        assert_eq!(rates, [2.5e7, 5e5]);
        let text = serde_json::to_string(&with_hosts).unwrap();
        assert!(text.contains("\"version\":4"), "{text}");
        assert_eq!(Policy::from_json(&text).unwrap(), with_hosts);
        for (from, to, said) in [
            ("\"version\":4", "\"version\":3", "there are client hosts, expected version 4"),
            (
                "\"host\":\"app\"",
                "\"host\":\"web\"",
                "client: host is web, expected one of the policy's hosts",
            ),
            ("\"request_delay_s\":0.03125", "\"request_delay_s\":-1", "client: request_delay_s is -1"),
            (
                "\"network_bytes_per_s\":1000000.0",
                "\"network_bytes_per_s\":0",
                "host 'app': network_bytes_per_s is 0",
            ),
            ("\"rate\":0.5", "\"rate\":1.5", "client: limits[0] at network-in: rate is 1.5"),
            (
                "\"stage\":\"network-in\",\"rate\":0.5",
                "\"stage\":\"storage\",\"rate\":0.5",
                "limits[0] at storage: stage is storage, expected network-in or network-out",
            ),
            (
                "\"stage\":\"network-in\",\"rate\":0.5",
                "\"stage\":\"network-out\",\"rate\":0.5",
                "limits is without one, expected a limit at network-in",
            ),
            (
                "\"request_delay_s\":0.03125",
                "\"request_delay_s\":5",
                "request_delay_s + answer_delay_s is 5.0625",
            ),
            ("\"client\":{", "\"former_client\":{", "client is null, expected its place on the links"),
            (
                "\"hosts\":[",
                "\"hosts\":[{\"name\":\"app\",\"network_bytes_per_s\":1},",
                "host 'app' is given twice",
            ),
        ] {
            assert_refused(&text, from, to, said);
        }
    }

    #[test]
    fn several_slos_are_written_read_and_checked() {
        let further =
            ["99.9% of reads < 50ms", "50% < 5ms"].map(|slo| slo.parse::<crate::Objective>().unwrap());
        let further = [(further[0], Some(0.03125)), (further[1], None)]
            .map(|(slo, bound_s)| PolicySlo { slo, bound_s });
        let Policy { policy_name, servers, mut workloads, .. } = policy();
        workloads[0] = workloads[0].clone().with_further_slos(further.to_vec());
        assert_eq!(workloads[0].objectives().count(), 3);
        let several = Policy::new(policy_name, servers, workloads).unwrap();
        let text = serde_json::to_string(&several).unwrap();
        assert!(text.contains("\"version\":5"), "{text}");
        assert_eq!(Policy::from_json(&text).unwrap(), several);
        for (from, to, said) in [
            ("\"version\":5", "\"version\":4", "a workload has several SLOs, expected version 5"),
            ("\"bound_s\":0.03125", "\"bound_s\":-1", "further_slos[0]: bound_s is -1"),
            ("50% < 5ms", "50% of all < 5ms", "'of reads' or 'of writes'"),
        ] {
            assert_refused(&text, from, to, said);
        }
    }

    #[test]
    fn the_largest_request_and_rounded_numbers_are_read() {
        let text = serde_json::to_string(&policy()).unwrap();
        let bounded = text.replacen("\"bound_s\":0.125", "\"bound_s\":0.125,\"largest_request\":0.01", 1);
        let read = Policy::from_json(&bounded).unwrap();
        assert_eq!(read.workloads[0].largest_request, Some(0.01));
        assert!(serde_json::to_string(&read).unwrap().contains("\"largest_request\":0.01"));
        let rounded = text.replacen("\"rate\":0.25", "\"rate\":0.251", 1);
        assert!(Policy::from_json(&rounded).is_ok());
        // If the document does not contain the server, its link bandwidth is unknown.
        let mut alone = policy();
        alone.workloads[0].limits[0].rate_per_s = 7.0;
        assert!(Policy::new("x", Vec::new(), alone.workloads).is_ok());
    }
}
