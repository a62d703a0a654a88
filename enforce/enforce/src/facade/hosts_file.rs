//! The file that locates servers and clients.

use crate::deployment::Deployment;
use model::OperationError;
use operation::files::read_text;
use operation::marks::refuse_marks;
use std::path::{Path, PathBuf};

/// A hosts file as read.
#[derive(Debug)]
pub struct HostsFile {
    /// Path of the file; paths in it are relative to it.
    pub path: PathBuf,
    /// Parsed content.
    pub deployment: Deployment,
    /// Text of the file, which proxies receive.
    pub text: String,
}

impl HostsFile {
    /// Reads a hosts file.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or is invalid.
    pub fn read(path: &Path) -> Result<Self, OperationError> {
        let text = read_text(path, "hosts file")?;
        refuse_marks(path, &text)?;
        let deployment = Deployment::parse(&text).map_err(|error| error.about(path.display()))?;
        Ok(Self { path: path.to_owned(), deployment, text })
    }
}
