//! Files of device profiles, and the hash by which a policy refers to a profile.

use crate::device::StorageProfile;
use model::{Op, OperationError};
use operation::files::read_text;
use std::path::Path;
use units::Bytes;

/// Reads a device profile.
///
/// # Errors
///
/// When the file cannot be read or is no device profile.
pub fn read_profile(path: &Path) -> Result<StorageProfile, OperationError> {
    let text = read_text(path, "device profile")?;
    StorageProfile::from_json(&text).map_err(|error| {
        OperationError::input(format_args!("{}: {error}", path.display()))
            .hint("`tailwright profile` measures a device and writes its profile")
    })
}

/// A name that two different ones of these profiles have: a policy, which has the name alone, would not say which is meant.
pub fn repeated_profile_name<'a>(profiles: &[&'a StorageProfile]) -> Option<&'a str> {
    for (index, profile) in profiles.iter().enumerate() {
        let namesake = profiles[..index].iter().find(|other| other.name() == profile.name());
        if namesake.is_some_and(|namesake| namesake != profile) {
            return Some(profile.name());
        }
    }
    None
}

/// A hash of what a profile says of work and of the idle device, which bounds count: 16 hexadecimal digits. Its name is no
/// part of it.
pub fn profile_hash(profile: &StorageProfile) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&profile.work_key());
    let sizes = profile.base_latency_rows().iter().map(|row| row.request);
    for size in std::iter::once(Bytes(u64::MAX)).chain(sizes) {
        for op in [Op::Read, Op::Write] {
            hasher.update(&profile.base_latency(op, size).0.to_le_bytes());
        }
        if size.0 < u64::MAX {
            hasher.update(&size.0.to_le_bytes());
        }
    }
    hasher.finalize().to_hex()[..16].to_owned()
}
