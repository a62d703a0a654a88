//! `cluster.toml`, the form in which people describe a cluster; `.json` has the same fields for programs.

use crate::cluster::rules::RuleSite;
use model::{Cluster, OperationError};
use operation::files::read_text;
use operation::marks::refuse_marks;
use operation::own_files::{OwnFile, mistaken};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::path::Path;

/// Reads a cluster file; paths in the result are relative to the working directory.
pub(super) fn read(path: &Path) -> Result<Cluster, OperationError> {
    let text = read_text(path, "cluster description")?;
    refuse_marks(path, &text)?;
    let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let cluster = parse(path, &text, is_json)?;
    Ok(relative_to(path.parent().unwrap_or(Path::new("")), cluster))
}

/// Reads a description in JSON that is no file; `origin` names it in errors, and its paths are relative to `folder`.
pub(super) fn read_json(origin: &Path, text: &str, folder: &Path) -> Result<Cluster, OperationError> {
    Ok(relative_to(folder, parse(origin, text, true)?))
}

fn parse(path: &Path, text: &str, is_json: bool) -> Result<Cluster, OperationError> {
    let cluster: Result<Cluster, String> = if is_json {
        serde_json::from_str(text).map_err(|error| error.to_string())
    } else {
        toml::from_str(text).map_err(|error| error.to_string())
    };
    cluster.map_err(|error| {
        if let Some(mistaken) = mistaken(&path.display().to_string(), text, OwnFile::Cluster) {
            return mistaken;
        }
        OperationError::input(format_args!("{}: {}", path.display(), error.trim_end()))
            .hint("`tailwright plan --help` shows a cluster file")
    })
}

/// The tables of a cluster file where they are.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TablePlaces {
    server: Vec<toml::Spanned<IgnoredAny>>,
    host: Vec<toml::Spanned<IgnoredAny>>,
    workload: Vec<toml::Spanned<IgnoredAny>>,
    failure_domain: Option<toml::Spanned<IgnoredAny>>,
}

/// Returns the line where an entry of a cluster file begins; `None` if it is no file of TOML.
pub(super) fn line_of(path: &Path, site: RuleSite) -> Option<usize> {
    let text = std::fs::read_to_string(path).ok()?;
    let places: TablePlaces = toml::from_str(&text).ok()?;
    let place = match site {
        RuleSite::Cluster => places.failure_domain.as_ref(),
        RuleSite::Server(index) => places.server.get(index),
        RuleSite::Host(index) => places.host.get(index),
        RuleSite::Workload(index) => places.workload.get(index),
    };
    Some(1 + text.get(..place?.span().start)?.matches('\n').count())
}

fn relative_to(folder: &Path, mut cluster: Cluster) -> Cluster {
    cluster.servers.iter_mut().for_each(|server| server.storage = folder.join(&server.storage));
    cluster.workloads.iter_mut().for_each(|workload| workload.trace = folder.join(&workload.trace));
    cluster
}
