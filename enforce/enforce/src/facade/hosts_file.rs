//! The file that says where servers and clients are.

use crate::deployment::Deployment;
use model::OperationError;
use operation::files::read_text;
use operation::marks::refuse_marks;
use std::path::{Path, PathBuf};

/// A hosts file that was read.
#[derive(Debug)]
pub struct HostsFile {
    /// Where the file is; paths in it are relative to it.
    pub path: PathBuf,
    /// What the file describes.
    pub deployment: Deployment,
    /// The file as it is written, which proxies are given.
    pub text: String,
}

impl HostsFile {
    /// Reads a hosts file.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or is not what it should be.
    pub fn read(path: &Path) -> Result<Self, OperationError> {
        let text = read_text(path, "hosts file")?;
        refuse_marks(path, &text)?;
        let deployment = Deployment::parse(&text).map_err(|error| error.about(path.display()))?;
        Ok(Self { path: path.to_owned(), deployment, text })
    }
}
