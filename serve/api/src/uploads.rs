//! Traces that tenants send: received to a file, read once into footprints, and deleted.

use crate::cluster::Cluster;
use crate::error::ApiError;
use crate::limits::TRACE_MAX;
use axum::body::Bytes;
use controller::ClusterState;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use trace::OpenOptions;
use workload::device::{NetworkModel, StorageProfile};
use workload::{Footprint, FootprintBuilder};

/// A trace on its way.
pub(crate) struct Upload {
    path: PathBuf,
}

impl Drop for Upload {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Upload {
    /// Writes a trace to a file whose name ends as the sender's, because endings tell formats apart.
    pub(crate) fn receive(cluster: &Cluster, name: &str, body: &Bytes) -> Result<Self, ApiError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        if body.is_empty() || body.len() > TRACE_MAX {
            return Err(ApiError::invalid(format_args!("a trace has 1 to {TRACE_MAX} bytes")));
        }
        let name: String = Path::new(name)
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .chars()
            .filter(|next| next.is_ascii_alphanumeric() || "._-".contains(*next))
            .take(100)
            .collect();
        let folder = cluster.folder().join("uploads");
        let failed =
            |error: std::io::Error| ApiError::invalid(format_args!("the trace cannot be kept: {error}"));
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let upload = Self { path: folder.join(format!("{number}-{name}")) };
        std::fs::write(&upload.path, body).map_err(failed)?;
        Ok(upload)
    }

    /// Reads the trace for devices, by class.
    pub(crate) fn footprints(
        &self,
        profiles: &[(String, StorageProfile)],
    ) -> Result<BTreeMap<String, Footprint>, ApiError> {
        let wrong = |error: trace::TraceError| {
            let text = error.to_string().replace(&*self.path.to_string_lossy(), "the trace");
            ApiError::invalid(text).hint(error.hint())
        };
        let mut builders: Vec<FootprintBuilder> = Vec::new();
        for (_, profile) in profiles {
            builders.push(FootprintBuilder::new(NetworkModel::default(), profile));
        }
        for request in trace::open(&self.path, &OpenOptions::default()).map_err(wrong)? {
            let request = request.map_err(wrong)?;
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

/// Returns the devices of all classes.
pub(crate) fn profiles(state: &ClusterState) -> Vec<(String, StorageProfile)> {
    state.kinds().map(|(name, kind)| (name.to_owned(), kind.profile().clone())).collect()
}
