//! Device profiles of a cluster's servers.

use model::{
    LINK_BURST_S, Objective, Op, PRIORITY_LEVELS, PolicyServer, Request, ServerClass, ServerEnforcement,
    WorkloadSpec,
};
use operation::{Notice, ProgressObserver};
use placement::{DeviceQueue, EnforcedClass};
use predict::EnforcedPath;
use units::{ByteRate, Bytes, Nanos};
use workload::device::{NetworkModel, StorageProfile};
use workload::profile_file::{profile_hash, repeated_profile_name};

/// Says when a policy's name of a device profile will mean two of them.
pub(super) fn warn_of_namesakes(profiles: &[&StorageProfile], observer: &dyn ProgressObserver) {
    if let Some(name) = repeated_profile_name(profiles) {
        observer.notice(Notice::Warning(format!(
            "two different device profiles have the name '{name}', so that a policy does not say which one a server has: \
             `verify` refuses them together; change the \"name\" in one of the files"
        )));
    }
}

/// Returns the non-preemptible work of a class's servers for the analysis.
pub fn enforced_class(class: &ServerClass, profile: &StorageProfile) -> EnforcedClass {
    EnforcedClass {
        channels: class.channels.or(profile.channels()).unwrap_or(1),
        best_effort_request: longest_service(profile, class.best_effort_request),
        proxy: class.proxy.as_secs(),
        densest_answer: profile.densest_answer(&NetworkModel::default()) * 1e9
            / class.network.bytes_per_sec(),
        ..enforced_links(class.packet, class.network)
    }
}

/// Returns the enforcers' configuration of a class that is planned by a model: as many requests at the device
/// as it has channels, which minimises their wait. Without a profile, links only.
pub(crate) fn enforced_path(class: &ServerClass, profile: Option<&StorageProfile>) -> EnforcedPath {
    let analysed = profile.map_or_else(
        || enforced_links(class.packet, class.network),
        |profile| enforced_class(class, profile),
    );
    EnforcedPath {
        class: analysed,
        queue: analysed.shortest_queue(),
        base_latency: profile.map_or(0.0, |profile| profile.base_latency_of_any().0),
        has_storage: profile.is_some(),
    }
}

/// Returns the non-preemptible work of links of this bandwidth that send such packets, without a device behind them.
pub(crate) fn enforced_links(packet: Bytes, network: ByteRate) -> EnforcedClass {
    let packet = packet.0 as f64 / network.bytes_per_sec();
    EnforcedClass {
        channels: 1,
        best_effort_request: 0.0,
        packet,
        link_burst: LINK_BURST_S.max(packet),
        proxy: 0.0,
        densest_answer: 0.0,
        levels_max: PRIORITY_LEVELS,
    }
}

/// Returns the name of a server of a class; the first has number 1.
pub(crate) fn server_name(class: &str, number: usize) -> String {
    format!("{class}-{number}")
}

/// Returns a server as a policy has it, with the non-preemptible work and the queue at the device that its bounds count, if
/// they count any.
pub(crate) fn policy_server(
    name: String,
    class: &ServerClass,
    profile: Option<&StorageProfile>,
    counted: Option<(EnforcedClass, DeviceQueue)>,
) -> PolicyServer {
    let enforcement = counted.map(|(enforced, queue)| ServerEnforcement {
        channels: queue.channels,
        outstanding: queue.outstanding,
        beside: queue.beside(),
        reserve: queue.reserve,
        best_effort_request_s: enforced.best_effort_request,
        packet_bytes: class.packet.0 as f64,
        link_burst_s: Some(enforced.link_burst),
        proxy_s: enforced.proxy,
    });
    PolicyServer {
        name,
        class: class.class.clone(),
        network_bytes_per_s: class.network.bytes_per_sec(),
        storage_profile: profile.map_or("", StorageProfile::name).to_owned(),
        storage_profile_hash: profile.map(profile_hash),
        enforcement,
    }
}

/// Says that bounds are about servers that do not exist.
pub(crate) fn warn_of_preemption(observer: &dyn ProgressObserver) {
    observer.notice(Notice::Warning(
        "these bounds are those of servers that interrupt what they have begun; no real server does, so that none is a \
         guarantee"
            .to_owned(),
    ));
}

/// The device time of a request of this size, seconds: that of the slower operation, which continues no other.
fn longest_service(profile: &StorageProfile, size: Bytes) -> f64 {
    let work = [Op::Read, Op::Write].map(|op| {
        let request = Request { arrival: Nanos(0), size, op, offset: None, response: None };
        profile.work_model().work(&request).0
    });
    if size.0 == 0 { 0.0 } else { work[0].max(work[1]) as f64 / (units::MILLI as f64 * 1e9) }
}

/// Warns if the device may need more requests at a time than are counted, and if class and profile disagree.
pub(super) fn warn_of_channels(
    class: &ServerClass,
    profile: &StorageProfile,
    observer: &dyn ProgressObserver,
) {
    let name = &class.class;
    let profile_name = profile.name();
    if let (Some(said), Some(measured)) = (class.channels, profile.channels())
        && said != measured
    {
        observer.notice(Notice::Warning(format!(
            "class '{name}' has {said} channels, but profile '{profile_name}' says that the device serves \
             {measured} requests at a time; bounds count {said}"
        )));
    }
    let limits = profile.queue_limits().filter(|limits| limits.read_requests_max > 1);
    if let Some(limits) = limits
        && class.channels.or(profile.channels()).is_none()
    {
        observer.notice(Notice::Warning(format!(
            "class '{name}': profile '{profile_name}' does not say how many requests the device serves at a time, \
             only that up to {} may be outstanding; bounds count 1 at a time, and are wrong if the device then does \
             less than its profile says: say `channels`",
            limits.read_requests_max.max(limits.write_requests_max)
        )));
    }
}

/// Warns when an SLO is about a percentile beyond the one that the base latency is known at. Queueing bounds
/// hold for every request; the idle device's latency is known at one percentile only.
pub(super) fn warn_of_percentile(
    workloads: &[WorkloadSpec],
    profile: &StorageProfile,
    observer: &dyn ProgressObserver,
) {
    let Some(known) = profile.base_latency_percentile() else { return };
    let beyond = workloads.iter().find_map(|workload| {
        let objectives = std::iter::once(workload.slo.into()).chain(workload.further_slos.iter().copied());
        let mut beyond = objectives.filter(|objective: &Objective| objective.slo.percentile > known);
        Some((&workload.name, beyond.next()?))
    });
    if let Some((name, objective)) = beyond {
        observer.notice(Notice::Warning(format!(
            "workload '{name}' asks for {objective}, but the base latency of profile '{}' is known at {known} only",
            profile.name()
        )));
    }
}
