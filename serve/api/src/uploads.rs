//! Traces that tenants send: received to a file, read once into footprints, and deleted.

use crate::cluster::Cluster;
use crate::error::ApiError;
use crate::handler::blocking;
use crate::limits::{TRACE_EXPANDED_MAX, TRACE_MAX, TRACE_PART_MAX, TRACE_READERS_MAX, TRACE_REQUESTS_MAX};
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use controller::ClusterState;
use futures_util::StreamExt as _;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;
use trace::OpenOptions;
use workload::device::{NetworkModel, StorageProfile};
use workload::{Footprint, FootprintBuilder};

/// Parts of a trace that wait for the disk.
const PARTS_MAX: usize = 8;

/// A trace that was received.
pub(crate) struct Upload {
    file: UploadFile,
    /// Hash of its bytes, in hexadecimal digits.
    pub(crate) hash: String,
}

/// The file of a trace, for as long as it is needed.
struct UploadFile(PathBuf);

impl Drop for UploadFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Upload {
    /// Writes a trace to a file as it comes. The name of the file ends as the sender's, because endings tell formats apart.
    pub(crate) async fn receive(cluster: &Cluster, name: &str, body: Body) -> Result<Self, ApiError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name: String = Path::new(name)
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .chars()
            .filter(|next| next.is_ascii_alphanumeric() || "._-".contains(*next))
            .take(100)
            .collect();
        let folder = uploads(cluster.folder());
        let failed = |error: std::io::Error| {
            let message = format!("the trace cannot be kept: {error}");
            ApiError::new(StatusCode::INSUFFICIENT_STORAGE, message)
        };
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let file = UploadFile(folder.join(format!("{number}-{name}")));
        // The disk may be slow, so a thread of its own writes; a client that sends faster waits.
        let (parts, received) = mpsc::channel::<Bytes>(PARTS_MAX);
        let writing = tokio::task::spawn_blocking(move || -> std::io::Result<Self> {
            let hash = file.write(received)?;
            Ok(Self { file, hash })
        });
        let sent = send_parts(body, parts).await;
        let written = writing.await.expect("it does not panic");
        sent?;
        written.map_err(failed)
    }

    /// Reads the trace for devices, by class, when it is its turn.
    ///
    /// # Errors
    /// If it cannot be read, or what was compressed in it is too much.
    pub(crate) async fn footprints(
        self,
        profiles: Vec<(String, StorageProfile)>,
    ) -> Result<BTreeMap<String, Footprint>, ApiError> {
        static TURNS: Semaphore = Semaphore::const_new(TRACE_READERS_MAX);
        let _turn = TURNS.acquire().await.expect("it is never closed");
        blocking(move || {
            if expands_beyond(&self.file.0, TRACE_EXPANDED_MAX) {
                return Err(too_large(format_args!("{} GiB when decompressed", TRACE_EXPANDED_MAX >> 30)));
            }
            self.read(&profiles)
        })
        .await
    }

    fn read(&self, profiles: &[(String, StorageProfile)]) -> Result<BTreeMap<String, Footprint>, ApiError> {
        let wrong = |error: trace::TraceError| {
            let text = error.to_string().replace(&*self.file.0.to_string_lossy(), "the trace");
            ApiError::invalid(text).hint(error.hint())
        };
        let mut builders: Vec<FootprintBuilder> = Vec::new();
        for (_, profile) in profiles {
            builders.push(FootprintBuilder::new(NetworkModel::default(), profile));
        }
        let mut requests = 0;
        for request in trace::open(&self.file.0, &OpenOptions::default()).map_err(wrong)? {
            let request = request.map_err(wrong)?;
            requests += 1;
            if requests > TRACE_REQUESTS_MAX {
                return Err(too_large(format_args!("{} million requests", TRACE_REQUESTS_MAX / 1_000_000)));
            }
            for builder in &mut builders {
                builder
                    .push(&request)
                    .map_err(|error| ApiError::invalid(format_args!("the trace: {error}")))?;
            }
        }
        let mut footprints = BTreeMap::new();
        for ((class, _), builder) in profiles.iter().zip(builders) {
            let footprint =
                builder.finish().map_err(|error| ApiError::invalid(format_args!("the trace: {error}")))?;
            footprints.insert(class.clone(), footprint);
        }
        Ok(footprints)
    }
}

impl UploadFile {
    /// Writes parts to the file, and returns their hash.
    fn write(&self, mut parts: mpsc::Receiver<Bytes>) -> std::io::Result<String> {
        let mut file = File::create(&self.0)?;
        let mut hasher = blake3::Hasher::new();
        while let Some(part) = parts.blocking_recv() {
            hasher.update(&part);
            file.write_all(&part)?;
        }
        Ok(hasher.finalize().to_hex().to_string())
    }
}

fn too_large(most: std::fmt::Arguments<'_>) -> ApiError {
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, format_args!("a trace has at most {most}"))
        .hint("send a shorter one")
}

/// Returns true if a compressed file has more text than `most` bytes. Readers skip blank lines without a word, so that the
/// number of requests alone bounds no time.
fn expands_beyond(path: &Path, most: u64) -> bool {
    let Ok(mut file) = File::open(path) else { return false };
    let mut magic = [0; 4];
    let read = file.read(&mut magic).unwrap_or(0);
    if file.rewind().is_err() {
        return false;
    }
    let text: Box<dyn Read> = match &magic[..read] {
        [0x1f, 0x8b, ..] => Box::new(flate2::read::MultiGzDecoder::new(BufReader::new(file))),
        [0x28, 0xb5, 0x2f, 0xfd] => match zstd::stream::read::Decoder::new(file) {
            Ok(decoder) => Box::new(decoder),
            Err(_) => return false,
        },
        _ => return false,
    };
    let mut text = text.take(most + 1);
    // A damaged file is found when it is read.
    let _ = std::io::copy(&mut text, &mut std::io::sink());
    text.limit() == 0
}

/// Passes the parts of a trace on.
///
/// # Errors
/// If there are none or too many bytes, or the client stops sending.
async fn send_parts(body: Body, parts: mpsc::Sender<Bytes>) -> Result<(), ApiError> {
    let mut body = body.into_data_stream();
    let mut received = 0;
    loop {
        let next = timeout(TRACE_PART_MAX, body.next()).await.map_err(|_| {
            let waited = TRACE_PART_MAX.as_secs();
            ApiError::new(
                StatusCode::REQUEST_TIMEOUT,
                format_args!("no part of the trace came for {waited} s"),
            )
        })?;
        let Some(part) = next else { break };
        let part =
            part.map_err(|error| ApiError::invalid(format_args!("the trace did not come whole: {error}")))?;
        received += part.len();
        if received > TRACE_MAX {
            let sent = format_args!("{} MiB as it is sent", TRACE_MAX >> 20);
            return Err(too_large(sent).hint("compress it as .zst, .gz or Parquet, or send a shorter one"));
        }
        if parts.send(part).await.is_err() {
            // It cannot be written, and the writer says why.
            return Ok(());
        }
    }
    if received == 0 { Err(ApiError::invalid("the trace is empty")) } else { Ok(()) }
}

/// Deletes what a run that was killed has left of traces.
pub(crate) fn forget_uploads(folder: &Path) {
    // If it cannot be deleted, it costs space and nothing else.
    let _ = std::fs::remove_dir_all(uploads(folder));
}

fn uploads(folder: &Path) -> PathBuf {
    folder.join("uploads")
}

/// Returns the devices of all classes.
pub(crate) fn profiles(state: &ClusterState) -> Vec<(String, StorageProfile)> {
    state.kinds().map(|(name, kind)| (name.to_owned(), kind.profile().clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_measured_by_what_it_expands_to() {
        let path = std::env::temp_dir().join(format!("tailwright-expanded-{}", std::process::id()));
        let text = vec![b'\n'; 100_000];
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(&text).expect("memory");
        let member = gzip.finish().expect("memory");
        let zstd = zstd::encode_all(&text[..], 3).expect("memory");
        for (compressed, expanded) in [
            (member.clone(), 100_000),
            // Members of gzip and frames of zstd follow each other.
            (member.repeat(3), 300_000),
            (zstd.repeat(3), 300_000),
        ] {
            std::fs::write(&path, compressed).expect("a file");
            assert!(!expands_beyond(&path, expanded));
            assert!(expands_beyond(&path, expanded - 1));
        }
        std::fs::write(&path, text).expect("a file");
        assert!(!expands_beyond(&path, 10), "it is as long as it was sent");
        std::fs::remove_file(&path).expect("it is there");
    }

    #[test]
    fn nothing_stays_of_a_killed_run() {
        let folder = std::env::temp_dir().join(format!("tailwright-uploads-{}", std::process::id()));
        std::fs::create_dir_all(uploads(&folder)).expect("a folder");
        std::fs::write(uploads(&folder).join("0-half.csv"), "0,").expect("a file");
        std::fs::write(folder.join("history.db"), "").expect("a file");
        forget_uploads(&folder);
        assert!(!uploads(&folder).exists() && folder.join("history.db").exists());
        forget_uploads(&folder);
        std::fs::remove_dir_all(&folder).expect("it is there");
    }
}
