//! What a live server was asked, written as a recording while it is observed.
//!
//! Directions and sizes are guessed as in [`crate::observation::record`]; the workload of a request is the port of the server, and its
//! client the address that it came from.

use crate::observation::record::{RecordedTrace, payload};
use model::OperationError;
use observe::{ObservedRequest, RequestPoint};
use operation::ProgressObserver;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::mpsc::SyncSender;
use trace::recorder::{RecordedMessage, RecorderThread, RecordingTally, recording_channel};
use trace::recording::{RecordableRequest, RecordingSettings};
use units::Nanos;

/// A recording that is being written.
pub(super) struct ServerRecording {
    sender: SyncSender<ObservedRequest>,
    thread: RecorderThread,
    /// Requests that came faster than they could be written.
    refused: u64,
}

impl ServerRecording {
    /// Begins, or goes on with, the recording in a folder.
    pub(super) fn begin(
        folder: &Path,
        settings: RecordingSettings,
        ports: &BTreeSet<u16>,
        observer: impl ProgressObserver + Send + 'static,
    ) -> Result<Self, OperationError> {
        let since_1970 = machine::clock::real_time().saturating_sub(machine::clock::now());
        let names = ports.iter().map(|port| (*port, format!("port-{port}"))).collect();
        let (sender, receiver) = recording_channel();
        let recorded = ServerTimes { since_1970, names };
        let thread = RecorderThread::begin(folder, settings, receiver, recorded, observer)?;
        Ok(Self { sender, thread, refused: 0 })
    }

    /// Hands a request to the thread that writes, which is not waited for.
    pub(super) fn take(&mut self, request: &ObservedRequest) {
        self.refused += u64::from(self.sender.try_send(*request).is_err());
    }

    /// Writes all that was taken; `None` without a request.
    pub(super) fn finish(self) -> Result<Option<RecordedTrace>, OperationError> {
        drop(self.sender);
        let RecordingTally { written, lost } = self.thread.finish()?;
        let lost = lost + self.refused;
        Ok((written + lost > 0).then_some(RecordedTrace { requests: written, late: 0, lost }))
    }
}

/// What turns an observed request into a recorded one.
struct ServerTimes {
    /// What the monotonic clock lacks to the time since 1970.
    since_1970: u64,
    /// The workloads by port.
    names: BTreeMap<u16, String>,
}

impl RecordedMessage<ObservedRequest> for ServerTimes {
    fn recorded<'a>(&'a self, request: &'a ObservedRequest) -> RecordableRequest<'a> {
        let (op, size) = payload(request);
        RecordableRequest {
            arrival: Nanos(self.since_1970 + request.at(RequestPoint::Wire)),
            size,
            op,
            offset: None,
            response: Nanos(request.latency_from_wire()),
            waited: Nanos::ZERO,
            workload: self.names.get(&request.port).map_or("", String::as_str),
            client: Some(request.peer.ip()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::testing::request;
    use operation::Silent;

    #[test]
    fn ports_and_clients_are_told_apart() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("live");
        let ports = [request(0, 0, 10).port, 7].into();
        let mut recording =
            ServerRecording::begin(&path, RecordingSettings::default(), &ports, Silent).expect("it is ours");
        for n in 0..50 {
            let port = if n % 5 == 0 { 7 } else { request(0, 0, 10).port };
            recording.take(&ObservedRequest { port, ..request(1000 + n, 1000 + n, 10) });
        }
        let done = recording.finish().expect("there is room").expect("there are requests");
        assert_eq!(done, RecordedTrace { requests: 50, late: 0, lost: 0 });
        let name = std::path::PathBuf::from(format!("{}#port-7", path.display()));
        let read = trace::open(&name, &trace::OpenOptions::default()).expect("it is there");
        assert_eq!(read.filter_map(Result::ok).count(), 10);
        let clients = trace::owners_of(&path, trace::SplitKey::Client, &trace::OpenOptions::default());
        let clients = clients.expect("it is read").expect("it has some");
        let client = request(0, 0, 10).peer.ip();
        let at = |port: u16| clients.requests[&format!("{client}@port-{port}")];
        assert_eq!((at(request(0, 0, 10).port), at(7)), (40, 10));
        assert_eq!(clients.servers.len(), 2);
    }
}
