//! A thread that writes a recording beside other work.

use crate::TraceError;
use crate::recording::{RecordableRequest, RecordingSettings, RecordingWriter};
use model::OperationError;
use operation::{Notice, ProgressObserver};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use units::{Bytes, Nanos, plural};

/// Maximum number of requests queued for the writing thread, to bridge pauses of the disk.
const QUEUED_MAX: usize = 1 << 16;
/// Interval at which the thread flushes requests that have waited long enough.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Totals of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordingTally {
    /// The number of requests that were written.
    pub written: u64,
    /// Number of requests lost because the disk was full or failed.
    pub lost: u64,
}

/// Conversion of messages into recorded requests.
pub trait RecordedMessage<M> {
    /// Returns the request that a message is about.
    fn recorded<'a>(&'a self, message: &'a M) -> RecordableRequest<'a>;
}

/// A thread that records the messages sent to it, until all senders are gone.
#[derive(Debug)]
pub struct RecorderThread(JoinHandle<Result<RecordingTally, OperationError>>);

/// Returns the settings of a recording that takes at most this much disk space.
///
/// # Errors
/// When that is less than the minimum.
pub fn recording_settings(disk_max: Bytes) -> Result<RecordingSettings, OperationError> {
    if disk_max < RecordingSettings::DISK_MIN {
        let least = RecordingSettings::DISK_MIN;
        return Err(OperationError::input(format_args!(
            "--record-space: expected at least {least}, found {disk_max}"
        ))
        .hint(
            "the oldest requests are removed for newer ones; 1GiB holds days of a server with 100 requests/s",
        ));
    }
    Ok(RecordingSettings { disk_max, ..RecordingSettings::default() })
}

/// Creates the channel to a recorder that is started later.
pub fn recording_channel<M>() -> (SyncSender<M>, Receiver<M>) {
    sync_channel(QUEUED_MAX)
}

impl RecorderThread {
    /// Begins a recording in `folder` of the messages from `receiver`, converted by `convert`. A disk
    /// failure is reported once; later requests are tried again.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn begin<M: Send + 'static>(
        folder: &Path,
        settings: RecordingSettings,
        receiver: Receiver<M>,
        convert: impl RecordedMessage<M> + Send + 'static,
        observer: impl ProgressObserver + Send + 'static,
    ) -> Result<Self, OperationError> {
        let writer = RecordingWriter::create(folder, settings).map_err(|error| failed(&error))?;
        let thread = std::thread::Builder::new().name("recorder".to_owned());
        let thread = thread.spawn(move || run(writer, &receiver, &convert, &observer));
        let thread = thread.map_err(|error| OperationError::machine(format_args!("no thread: {error}")))?;
        Ok(Self(thread))
    }

    /// Waits until all messages are written.
    ///
    /// # Errors
    /// When the disk fails although no request was lost.
    pub fn finish(self) -> Result<RecordingTally, OperationError> {
        self.0.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Reports requests that a recording lacks.
///
/// # Errors
/// When requests were lost.
pub fn check_nothing_lost(place: &Path, lost: u64) -> Result<(), OperationError> {
    if lost == 0 {
        return Ok(());
    }
    let lost = plural(lost, "more request");
    let message = format_args!("{}: {lost} could not be recorded", place.display());
    Err(OperationError::machine(message)
        .hint("its disk was full, failed or was too slow; free space, or record to another disk"))
}

fn run<M>(
    mut writer: RecordingWriter,
    receiver: &Receiver<M>,
    convert: &impl RecordedMessage<M>,
    observer: &impl ProgressObserver,
) -> Result<RecordingTally, OperationError> {
    // The thread inherits its creator's priority, possibly real-time. If it cannot drop that, recording
    // still works but may delay other threads.
    let _ = machine::realtime::ordinary();
    let mut has_failed = false;
    loop {
        let written = match receiver.recv_timeout(LOOK_EVERY) {
            Ok(message) => writer.write(&convert.recorded(&message), now()),
            Err(RecvTimeoutError::Timeout) => writer.tick(now()),
            Err(RecvTimeoutError::Disconnected) => break,
        };
        if let (Err(error), false) = (&written, has_failed) {
            observer.notice(Notice::Warning(format!("recording: {error}; it goes on when it can")));
        }
        has_failed |= written.is_err();
    }
    let finished = writer.finish(now());
    let lost = writer.lost();
    match finished {
        // The number of lost requests says more than the failure of the last part.
        Err(error) if lost > 0 && !has_failed => {
            observer.notice(Notice::Warning(format!("recording: {error}")));
        }
        Err(error) if lost == 0 => return Err(failed(&error)),
        _ => {}
    }
    Ok(RecordingTally { written: writer.taken() - lost, lost })
}

fn now() -> Nanos {
    Nanos(machine::clock::now())
}

fn failed(error: &TraceError) -> OperationError {
    OperationError::machine(error).hint(error.hint())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Op;
    use operation::Silent;

    fn request(arrival: u64) -> RecordableRequest<'static> {
        RecordableRequest {
            arrival: Nanos(arrival),
            size: Bytes(1),
            op: Op::Read,
            offset: None,
            response: Nanos(5),
            waited: Nanos(0),
            workload: "x",
            client: None,
        }
    }

    struct Numbers;

    impl RecordedMessage<u64> for Numbers {
        fn recorded<'a>(&'a self, message: &'a u64) -> RecordableRequest<'a> {
            request(*message)
        }
    }

    #[test]
    fn what_was_sent_is_written_when_nobody_can_send_any_more() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rec");
        let (sender, receiver) = recording_channel::<u64>();
        let settings = recording_settings(Bytes(1 << 20)).expect("it is enough");
        let thread = RecorderThread::begin(&path, settings, receiver, Numbers, Silent).expect("it is ours");
        (0..1000).for_each(|arrival| sender.send(arrival).expect("it listens"));
        drop(sender);
        assert_eq!(thread.finish(), Ok(RecordingTally { written: 1000, lost: 0 }));
        let read = crate::open(&path, &crate::OpenOptions::default()).expect("it is there");
        assert_eq!(read.map(|request| request.expect("it is in order").arrival.0).max(), Some(999));
        assert!(recording_settings(Bytes(1)).is_err());
    }

    #[test]
    fn requests_of_the_last_part_that_cannot_be_written_are_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rec");
        let (sender, receiver) = recording_channel::<u64>();
        let settings = recording_settings(Bytes(1 << 20)).expect("it is enough");
        let thread = RecorderThread::begin(&path, settings, receiver, Numbers, Silent).expect("it is ours");
        std::fs::remove_dir_all(&path).expect("it is ours");
        (0..3).for_each(|arrival| sender.send(arrival).expect("it listens"));
        drop(sender);
        assert_eq!(thread.finish(), Ok(RecordingTally { written: 0, lost: 3 }));
    }

    #[test]
    fn a_folder_that_is_gone_is_told_once_and_the_rest_goes_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rec");
        let mut writer = RecordingWriter::create(&path, RecordingSettings::default()).expect("it is ours");
        std::fs::remove_dir(&path).expect("it is empty");
        let late = Nanos(5_000_000_000);
        writer.write(&request(7), Nanos(1)).expect("it waits in memory");
        assert!(writer.tick(late).is_err());
        assert_eq!(writer.lost(), 1);
        std::fs::create_dir(&path).expect("it is ours");
        writer.write(&request(8), late).expect("it waits in memory");
        assert_eq!(writer.finish(late).map_err(|error| error.to_string()), Ok(2));
    }
}
