//! Footprints of traces that were read before, kept by what they were computed from.
//!
//! The key is a hash of everything that decides a footprint: the trace's bytes and how they are read, the
//! work model of the device, the network model and the version of this format. An entry therefore never
//! goes stale; one that is damaged is read as absent and written anew. Entries are written to one side
//! and renamed, so that no reader sees half of one.

use machine::whole_file;
use operation::{Notice, ProgressObserver};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use trace::OpenOptions;
use workload::Footprint;
use workload::device::{NetworkModel, StorageProfile};

/// Changes whenever what is computed or how it is stored does.
const VERSION: &str = "tailwright-footprint-4";

/// The result of one reading of a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct CachedFootprint {
    /// Requests that a lenient reading passed over.
    pub(super) skipped: u64,
    pub(super) footprint: Footprint,
}

/// A folder of footprints by key; without a folder, nothing is kept.
#[derive(Debug)]
pub(super) struct FootprintCache {
    folder: Option<PathBuf>,
    warned: AtomicBool,
}

impl FootprintCache {
    /// A cache that keeps nothing.
    pub(super) fn disabled() -> Self {
        Self::in_folder(None)
    }

    /// Opens the user's cache, `$XDG_CACHE_HOME/tailwright/footprints`, by default below `~/.cache`. Disabled
    /// without a home directory.
    pub(super) fn of_user() -> Self {
        let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")));
        Self::in_folder(base.map(|base| base.join("tailwright").join("footprints")))
    }

    fn in_folder(folder: Option<PathBuf>) -> Self {
        Self { folder, warned: AtomicBool::new(false) }
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.folder.is_some()
    }

    /// Returns the entry for a key, if it is intact.
    pub(super) fn get(&self, key: &str) -> Option<CachedFootprint> {
        let text = fs::read_to_string(self.path(key)?).ok()?;
        let (sum, body) = text.split_once('\n')?;
        (blake3::hash(body.as_bytes()).to_hex().as_str() == sum).then_some(())?;
        serde_json::from_str(body).ok()
    }

    /// Stores an entry. Reports the first failure to the observer.
    pub(super) fn put(&self, key: &str, entry: &CachedFootprint, observer: &dyn ProgressObserver) {
        let Some(path) = self.path(key) else { return };
        if let Err(error) = self.write(&path, entry)
            && !self.warned.swap(true, Ordering::Relaxed)
        {
            observer.notice(Notice::Warning(format!(
                "cannot store footprints for later runs in {}: {error}",
                path.parent().unwrap_or(Path::new("")).display()
            )));
        }
    }

    fn write(&self, path: &Path, entry: &CachedFootprint) -> io::Result<()> {
        let body = serde_json::to_string(entry)?;
        let sum = blake3::hash(body.as_bytes()).to_hex();
        fs::create_dir_all(path.parent().expect("an entry is in the folder"))?;
        whole_file::write_unsynced(path, format!("{sum}\n{body}").as_bytes())
    }

    fn path(&self, key: &str) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(format!("{key}.json")))
    }
}

/// The key of a trace's footprint on a device; reads the whole file.
pub(super) fn key(
    path: &Path,
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
    part(path.file_name().unwrap_or_default().as_encoded_bytes());
    for file in trace::files_of(path)? {
        io::copy(&mut fs::File::open(file)?, &mut hasher)?;
    }
    Ok(hasher.finalize().to_hex().to_string())
}
