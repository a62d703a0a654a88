//! The halves of a cluster's traces, and emulated devices in the place of its own.

use crate::device::SsdModel;
use model::{Cluster, OperationError, Request};
use std::path::{Path, PathBuf};
use trace::{OpenOptions, TraceFormat, TraceWriter};
use units::{Bytes, Nanos};
use workload::device::StorageProfile;

/// The cluster file in the folder of [`ClusterHalves::write`].
pub const CLUSTER_FILE: &str = "cluster.json";
/// Minimum time of a request in a proxy on one machine that runs all hosts, as the plan counts it.
const PROXY_MIN: Nanos = Nanos(1_000_000);
/// The channels of a device whose profile does not say how many it has.
const CHANNELS: u32 = 4;

/// A class of servers with emulated devices.
#[derive(Debug, Clone)]
pub struct EmulatedClass {
    /// The device of each server.
    pub model: SsdModel,
    /// The profile of that device.
    pub profile: StorageProfile,
    /// The largest best-effort request that bounds count.
    pub best_effort_request: Bytes,
}

/// A cluster whose traces are cut in two.
#[derive(Debug, Clone)]
pub struct ClusterHalves {
    /// The cluster, with paths of the files of [`Self::write`].
    cluster: Cluster,
    /// The classes of servers.
    pub classes: Vec<EmulatedClass>,
    /// The first halves by workload; each begins at 0.
    first: Vec<Vec<Request>>,
    /// The second halves by workload; each begins at 0.
    pub second: Vec<Vec<Request>>,
}

impl ClusterHalves {
    /// Reads the traces and cuts each in the middle of its time.
    ///
    /// # Errors
    /// When a trace cannot be read or has no request in one of its halves.
    pub fn new(
        mut cluster: Cluster,
        profiles: &[StorageProfile],
        options: &OpenOptions,
    ) -> Result<Self, OperationError> {
        let mut first = Vec::new();
        let mut second = Vec::new();
        for workload in &mut cluster.workloads {
            let requests: Vec<Request> = trace::open(&workload.trace, options)
                .and_then(Iterator::collect)
                .map_err(|error| OperationError::input(&error).hint(error.hint()))?;
            let [one, other] = cut(&requests).ok_or_else(|| {
                OperationError::input(format_args!("{}: too few requests to halve", workload.trace.display()))
                    .hint("one half is planned with, and the other is sent")
            })?;
            first.push(one);
            second.push(other);
        }
        for (number, workload) in cluster.workloads.iter_mut().enumerate() {
            workload.trace = PathBuf::from(format!("trace-{number}.csv"));
        }
        let mut sizes: Vec<Bytes> =
            first.iter().chain(&second).flatten().map(|request| request.size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let mut classes = Vec::new();
        for ((number, class), profile) in cluster.servers.iter_mut().enumerate().zip(profiles) {
            let mut used = sizes.clone();
            used.extend((class.best_effort_request.0 > 0).then_some(class.best_effort_request));
            let channels = class.channels.or(profile.channels()).unwrap_or(CHANNELS);
            let model = SsdModel::resembling(profile, channels, &used);
            class.storage = PathBuf::from(format!("device-{number}.json"));
            class.channels = None;
            class.proxy = class.proxy.max(PROXY_MIN);
            let best_effort_request = class.best_effort_request;
            classes.push(EmulatedClass { model, profile: model.profile(&used), best_effort_request });
        }
        Ok(Self { cluster, classes, first, second })
    }

    /// Writes the input of a planner to a folder: the cluster, the profiles of the devices, and the first
    /// half of each trace.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), OperationError> {
        let text = serde_json::to_string_pretty(&self.cluster).expect("a cluster is plain data");
        write_text(&folder.join(CLUSTER_FILE), &text)?;
        for (class, emulated) in self.cluster.servers.iter().zip(&self.classes) {
            write_text(&folder.join(&class.storage), &emulated.profile.to_json())?;
        }
        for (workload, requests) in self.cluster.workloads.iter().zip(&self.first) {
            write_trace(&folder.join(&workload.trace), requests.iter().copied())?;
        }
        Ok(())
    }

    /// The class of this name with its devices.
    pub fn class(&self, name: &str) -> Option<&EmulatedClass> {
        let number = self.cluster.servers.iter().position(|class| class.class == name)?;
        self.classes.get(number)
    }

    /// The time of the longest second half.
    pub fn duration(&self) -> Nanos {
        let lasts = self.second.iter().filter_map(|half| half.last());
        lasts.map(|request| request.arrival).max().unwrap_or(Nanos::ZERO)
    }
}

/// The requests before and after the middle of their time, each beginning at 0.
fn cut(requests: &[Request]) -> Option<[Vec<Request>; 2]> {
    let origin = requests.first()?.arrival;
    let last = requests.last()?.arrival;
    let middle = Nanos(origin.0 + (last - origin).0 / 2 + 1);
    let at = requests.partition_point(|request| request.arrival < middle);
    let rebased = |half: &[Request], from: Nanos| {
        let request = |request: &Request| Request {
            arrival: request.arrival - from,
            offset: None,
            response: None,
            ..*request
        };
        half.iter().map(request).collect::<Vec<_>>()
    };
    let (one, other) = requests.split_at(at);
    (!one.is_empty() && !other.is_empty()).then(|| [rebased(one, origin), rebased(other, middle)])
}

pub(super) fn write_text(path: &Path, text: &str) -> Result<(), OperationError> {
    std::fs::write(path, text).map_err(|error| {
        OperationError::machine(format_args!("cannot write {}: {error}", path.display()))
            .hint("see the variable TMPDIR")
    })
}

pub(super) fn write_trace(
    path: &Path,
    requests: impl Iterator<Item = Request>,
) -> Result<(), OperationError> {
    let wrong = |error: trace::TraceError| OperationError::machine(&error).hint(error.hint());
    let mut writer = TraceWriter::create(path, TraceFormat::Csv).map_err(wrong)?;
    for request in requests {
        writer.write(&request).map_err(wrong)?;
    }
    writer.finish().map_err(wrong)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Op;

    fn request(arrival: u64) -> Request {
        Request { arrival: Nanos(arrival), size: Bytes(4096), op: Op::Read, offset: Some(7), response: None }
    }

    #[test]
    fn halves_have_every_request_once_and_begin_at_nothing() {
        let requests = [100, 150, 200, 201, 260, 300].map(request);
        let [one, other] = cut(&requests).expect("both have requests");
        assert_eq!(one.iter().map(|request| request.arrival.0).collect::<Vec<_>>(), [0, 50, 100]);
        assert_eq!(other.iter().map(|request| request.arrival.0).collect::<Vec<_>>(), [0, 59, 99]);
        assert!(cut(&requests[..1]).is_none() && cut(&[]).is_none());
    }
}
