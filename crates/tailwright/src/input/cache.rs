//! Footprints of traces that were read before, kept by what they were computed from.
//!
//! The key is a hash of everything that decides a footprint: the trace's bytes and how they are read, the
//! work model of the device, the network model and the version of this format. An entry therefore never
//! goes stale; one that is damaged is read as absent and written anew. Entries are written to one side
//! and renamed, so that no reader sees half of one.

use crate::files::write_whole;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use trace::OpenOptions;
use workload::Footprint;
use workload::device::{NetworkModel, StorageProfile};

/// Changes whenever what is computed or how it is stored does.
const VERSION: &str = "tailwright-footprint-1";

/// What one reading of a trace gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Requests that a lenient reading passed over.
    pub(super) skipped: u64,
    pub(super) footprint: Footprint,
}

/// A folder of entries; `None` keeps nothing.
#[derive(Debug)]
pub(super) struct Cache {
    folder: Option<PathBuf>,
    warned: AtomicBool,
}

impl Cache {
    pub(super) fn off() -> Self {
        Self::at(None)
    }

    /// `$XDG_CACHE_HOME/tailwright/footprints`, by default under `~/.cache`; off when there is no home.
    pub(super) fn of_user() -> Self {
        let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")));
        Self::at(base.map(|base| base.join("tailwright").join("footprints")))
    }

    fn at(folder: Option<PathBuf>) -> Self {
        Self { folder, warned: AtomicBool::new(false) }
    }

    pub(super) fn is_on(&self) -> bool {
        self.folder.is_some()
    }

    /// The entry under this key, if there is a sound one.
    pub(super) fn get(&self, key: &str) -> Option<Entry> {
        let text = fs::read_to_string(self.path(key)?).ok()?;
        let (sum, body) = text.split_once('\n')?;
        (blake3::hash(body.as_bytes()).to_hex().as_str() == sum).then_some(())?;
        serde_json::from_str(body).ok()
    }

    /// Stores an entry. When that fails the user is told, once.
    pub(super) fn put(&self, key: &str, entry: &Entry) {
        let Some(path) = self.path(key) else { return };
        if let Err(error) = self.write(&path, entry)
            && !self.warned.swap(true, Ordering::Relaxed)
        {
            eprintln!(
                "warning: cannot store footprints for later runs in {}: {error}",
                path.parent().unwrap_or(Path::new("")).display()
            );
        }
    }

    fn write(&self, path: &Path, entry: &Entry) -> io::Result<()> {
        let body = serde_json::to_string(entry)?;
        let sum = blake3::hash(body.as_bytes()).to_hex();
        fs::create_dir_all(path.parent().expect("an entry is in the folder"))?;
        write_whole(path, format!("{sum}\n{body}").as_bytes())
    }

    fn path(&self, key: &str) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(format!("{key}.json")))
    }
}

/// The key of a trace's footprint on a device; reads the whole file.
pub(super) fn key(
    trace: &Path,
    options: &OpenOptions,
    profile: &StorageProfile,
    network: &NetworkModel,
) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    let mut part = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    part(VERSION.as_bytes());
    part(&serde_json::to_vec(network)?);
    part(&profile.work_key());
    let format = options.format.map_or("detected", trace::TraceFormat::name);
    part(format!("{format},{},{}", options.lenient, options.sort_window).as_bytes());
    // The name breaks ties when a format is detected.
    part(trace.file_name().unwrap_or_default().as_encoded_bytes());
    io::copy(&mut fs::File::open(trace)?, &mut hasher)?;
    Ok(hasher.finalize().to_hex().to_string())
}
