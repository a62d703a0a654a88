//! Selection of one trace in a file with several workloads, and its syntax for users: `FILE#WORKLOAD`.
//!
//! Files of observations, recordings, packet captures and block traces give the owner of each request. `FILE#mail` is
//! the trace of the workload `mail`, `FILE#client=10.0.0.7` that of a client, and `FILE#*` that of all.
//! `FILE` alone requires that all requests are of one workload: several workloads as one are rarely
//! intended. A path that exists literally is never split.

use crate::error::TraceErrorKind;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Maximum number of workloads or clients that are distinguished in a file.
const OWNERS_MAX: usize = 1 << 16;
/// Prefix of a client's address in the name of a trace.
const CLIENT_PREFIX: &str = "client=";

/// Key that distinguishes the requests of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitKey {
    /// The workload that a request belongs to.
    Workload,
    /// Address of the client.
    Client,
}

/// Selection of the requests of a file that are read as one trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceSelection {
    /// All requests, which must be of one workload.
    Sole,
    /// All requests of any owner, counted by this key.
    All(SplitKey),
    /// Requests of one workload or client.
    Named(SplitKey, String),
}

/// A trace as users name it: a file or the folder of a recording, and a selection of its requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracePlace {
    /// File or folder; `-` is standard input.
    pub path: PathBuf,
    /// Selection of its requests.
    pub selection: TraceSelection,
}

impl TracePlace {
    /// Parses `name`, split at the first `#` whose preceding part is an existing path or `-`.
    pub fn of(name: &Path) -> Self {
        let whole = Self { path: name.to_owned(), selection: TraceSelection::Sole };
        if name.exists() {
            return whole;
        }
        let Some(text) = name.to_str() else { return whole };
        for (at, _) in text.match_indices('#') {
            let path = Path::new(&text[..at]);
            if path.exists() || text[..at] == *"-" {
                return Self { path: path.to_owned(), selection: TraceSelection::of(&text[at + 1..]) };
            }
        }
        whole
    }
}

impl TraceSelection {
    fn of(text: &str) -> Self {
        match (text, text.strip_prefix(CLIENT_PREFIX)) {
            ("*", _) => Self::All(SplitKey::Workload),
            (_, Some(client)) => Self::Named(SplitKey::Client, client.to_owned()),
            (workload, None) => Self::Named(SplitKey::Workload, workload.to_owned()),
        }
    }
}

/// Decides for each request of a file whether it belongs to the trace, and counts requests by owner.
#[derive(Debug)]
pub(crate) struct RequestSelector {
    selection: TraceSelection,
    /// Number of requests of each workload or client.
    counts: BTreeMap<String, u64>,
}

impl RequestSelector {
    pub(crate) fn new(selection: &TraceSelection) -> Self {
        Self { selection: selection.clone(), counts: BTreeMap::new() }
    }

    pub(crate) fn selection(&self) -> &TraceSelection {
        &self.selection
    }

    /// Returns true if a request of this workload and client belongs to the trace.
    pub(crate) fn admits(&mut self, workload: &str, client: &str) -> Result<bool, TraceErrorKind> {
        let owner = match &self.selection {
            TraceSelection::All(SplitKey::Client) | TraceSelection::Named(SplitKey::Client, _) => client,
            _ => workload,
        };
        match self.counts.get_mut(owner) {
            Some(count) => *count += 1,
            None => self.add(owner)?,
        }
        Ok(match &self.selection {
            TraceSelection::Named(_, name) => name == owner,
            TraceSelection::Sole | TraceSelection::All(_) => true,
        })
    }

    /// Counts the first request of an owner.
    fn add(&mut self, owner: &str) -> Result<(), TraceErrorKind> {
        if let (TraceSelection::Sole, Some(first)) = (&self.selection, self.counts.keys().next()) {
            return Err(TraceErrorKind::SeveralWorkloads { first: first.clone(), second: owner.to_owned() });
        }
        if self.counts.len() == OWNERS_MAX {
            return Err(TraceErrorKind::Truncated(format!("more than {OWNERS_MAX} workloads or clients")));
        }
        self.counts.insert(owner.to_owned(), 1);
        Ok(())
    }

    /// Checks, at the end of the file, that the selected workload or client occurred.
    pub(crate) fn finish(&self) -> Result<(), TraceErrorKind> {
        match &self.selection {
            TraceSelection::Named(_, name) if !self.counts.contains_key(name) => {
                Err(TraceErrorKind::NoSuchWorkload { name: name.clone(), known: self.known() })
            }
            _ => Ok(()),
        }
    }

    /// Returns the requests of each workload or client so far.
    pub(crate) fn counts(&self) -> &BTreeMap<String, u64> {
        &self.counts
    }

    /// Returns the first names, for a message.
    fn known(&self) -> String {
        const SHOWN: usize = 20;
        let names: Vec<&str> = self.counts.keys().take(SHOWN).map(String::as_str).collect();
        let more = if self.counts.len() > SHOWN { ", …" } else { "" };
        names.join(", ") + more
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(key: SplitKey, name: &str) -> TraceSelection {
        TraceSelection::Named(key, name.to_owned())
    }

    #[test]
    fn a_name_is_taken_apart_where_something_exists() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        for name in ["run.parquet", "odd#name.csv"] {
            std::fs::write(file(name), "x").unwrap();
        }
        for (name, path, selection) in [
            ("run.parquet", "run.parquet", TraceSelection::Sole),
            ("run.parquet#mail", "run.parquet", named(SplitKey::Workload, "mail")),
            ("run.parquet#a#b", "run.parquet", named(SplitKey::Workload, "a#b")),
            ("run.parquet#*", "run.parquet", TraceSelection::All(SplitKey::Workload)),
            ("run.parquet#client=::1", "run.parquet", named(SplitKey::Client, "::1")),
            ("odd#name.csv", "odd#name.csv", TraceSelection::Sole),
            ("odd#name.csv#web", "odd#name.csv", named(SplitKey::Workload, "web")),
            ("gone.csv#web", "gone.csv#web", TraceSelection::Sole),
        ] {
            assert_eq!(TracePlace::of(&file(name)), TracePlace { path: file(path), selection }, "{name}");
        }
    }

    #[test]
    fn several_workloads_are_not_one_trace() {
        let mut sole = RequestSelector::new(&TraceSelection::Sole);
        assert!(sole.admits("mail", "a").unwrap() && sole.admits("mail", "b").unwrap());
        assert!(matches!(sole.admits("web", "a"), Err(TraceErrorKind::SeveralWorkloads { .. })));
        let mut all = RequestSelector::new(&TraceSelection::All(SplitKey::Client));
        assert!(all.admits("mail", "a").unwrap() && all.admits("web", "a").unwrap());
        assert_eq!(all.counts()["a"], 2);
        let mut web = RequestSelector::new(&named(SplitKey::Workload, "web"));
        assert!(!web.admits("mail", "a").unwrap());
        assert!(matches!(web.finish(), Err(TraceErrorKind::NoSuchWorkload { .. })));
        assert!(web.admits("web", "a").unwrap() && web.finish().is_ok());
    }
}
