//! Selection of one trace in a file with several workloads, and its syntax for users: `FILE#WORKLOAD`.
//!
//! Files of observations, recordings, packet captures and block traces give the owner of each request. `FILE#mail` is
//! the trace of the workload `mail`, `FILE#client=10.0.0.7` that of a client, and `FILE#*` that of all.
//! `FILE` alone requires that all requests are of one workload: several workloads as one are rarely
//! intended. A path that exists literally is never split.

use crate::error::TraceErrorKind;
use std::collections::{BTreeMap, BTreeSet};
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

/// Workload, client and server of a request, as far as a file states them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestParties<'a> {
    /// Workload, or an empty text.
    pub(crate) workload: &'a str,
    /// Client, or an empty text.
    pub(crate) client: &'a str,
    /// Server or device, or an empty text if the file has requests of one server only.
    pub(crate) server: &'a str,
}

/// Returns the server of a workload in a recording. The workload is the server's port where a live server
/// was observed; a proxy records the requests of one server.
pub(crate) fn recorded_server(workload: &str) -> &str {
    let port = workload.strip_prefix("port-").and_then(|port| port.parse::<u16>().ok());
    if port.is_some() { workload } else { "" }
}

/// Decides for each request of a file whether it belongs to the trace, and counts requests by owner.
///
/// The requests of one client at several servers are several traces, `CLIENT@SERVER`: they share no
/// queue, and differ in protocol.
#[derive(Debug)]
pub(crate) struct RequestSelector {
    selection: TraceSelection,
    /// Number of requests of each workload or client.
    counts: BTreeMap<String, u64>,
    /// Servers of the counted clients.
    servers: BTreeSet<String>,
    /// Server of the selected client.
    server: Option<String>,
    /// `CLIENT@SERVER` of the current request.
    owner: String,
}

impl RequestSelector {
    pub(crate) fn new(selection: &TraceSelection) -> Self {
        Self {
            selection: selection.clone(),
            counts: BTreeMap::new(),
            servers: BTreeSet::new(),
            server: None,
            owner: String::new(),
        }
    }

    pub(crate) fn selection(&self) -> &TraceSelection {
        &self.selection
    }

    /// Returns true if a request of these parties belongs to the trace.
    pub(crate) fn admits(&mut self, parties: RequestParties<'_>) -> Result<bool, TraceErrorKind> {
        let RequestParties { workload, client, server } = parties;
        let mut owner = std::mem::take(&mut self.owner);
        owner.clear();
        match &self.selection {
            TraceSelection::All(SplitKey::Client) | TraceSelection::Named(SplitKey::Client, _) => {
                owner.push_str(client);
                if !server.is_empty() {
                    owner.extend(["@", server]);
                }
                if !self.servers.contains(server) {
                    self.servers.insert(server.to_owned());
                }
            }
            _ => owner.push_str(workload),
        }
        let counted = match self.counts.get_mut(&owner) {
            Some(count) => {
                *count += 1;
                Ok(())
            }
            None => self.add(&owner),
        };
        let is_named = matches!(&self.selection, TraceSelection::Named(_, name) if *name == owner);
        self.owner = owner;
        counted?;
        match &self.selection {
            TraceSelection::Named(SplitKey::Client, name) if name == client => {
                self.check_server(client, server)?;
                Ok(true)
            }
            TraceSelection::Named(..) => Ok(is_named),
            TraceSelection::Sole | TraceSelection::All(_) => Ok(true),
        }
    }

    /// Fails if the selected client has sent requests to another server before.
    fn check_server(&mut self, client: &str, server: &str) -> Result<(), TraceErrorKind> {
        match &self.server {
            Some(first) if first == server => Ok(()),
            Some(first) => Err(TraceErrorKind::SeveralServers {
                client: client.to_owned(),
                first: first.clone(),
                second: server.to_owned(),
            }),
            None => {
                self.server = Some(server.to_owned());
                Ok(())
            }
        }
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
            TraceSelection::Named(_, name) if self.server.is_none() && !self.counts.contains_key(name) => {
                Err(TraceErrorKind::NoSuchWorkload { name: name.clone(), known: self.known() })
            }
            _ => Ok(()),
        }
    }

    /// Returns the requests of each workload or client so far; a client is `CLIENT@SERVER` if its server is
    /// known.
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

    fn parties<'a>(workload: &'a str, client: &'a str) -> RequestParties<'a> {
        RequestParties { workload, client, server: recorded_server(workload) }
    }

    #[test]
    fn several_servers_of_a_client_are_not_one_trace() {
        let mut all = RequestSelector::new(&TraceSelection::All(SplitKey::Client));
        let mut one = RequestSelector::new(&named(SplitKey::Client, "a@port-2049"));
        for (workload, is_selected) in [("port-2049", true), ("port-11211", false), ("port-2049", true)] {
            assert!(all.admits(parties(workload, "a")).unwrap());
            assert_eq!(one.admits(parties(workload, "a")).unwrap(), is_selected);
        }
        assert!(one.finish().is_ok());
        assert_eq!((all.counts()["a@port-2049"], all.counts()["a@port-11211"]), (2, 1));
        let mut client = RequestSelector::new(&named(SplitKey::Client, "a"));
        assert!(client.admits(parties("port-2049", "a")).unwrap());
        assert!(!client.admits(parties("port-11211", "b")).unwrap());
        let refused = client.admits(parties("port-11211", "a"));
        assert!(matches!(refused, Err(TraceErrorKind::SeveralServers { .. })));
    }

    #[test]
    fn several_workloads_are_not_one_trace() {
        let mut sole = RequestSelector::new(&TraceSelection::Sole);
        assert!(sole.admits(parties("mail", "a")).unwrap() && sole.admits(parties("mail", "b")).unwrap());
        assert!(matches!(sole.admits(parties("web", "a")), Err(TraceErrorKind::SeveralWorkloads { .. })));
        let mut all = RequestSelector::new(&TraceSelection::All(SplitKey::Client));
        assert!(all.admits(parties("mail", "a")).unwrap() && all.admits(parties("web", "a")).unwrap());
        assert_eq!(all.counts()["a"], 2);
        let mut web = RequestSelector::new(&named(SplitKey::Workload, "web"));
        assert!(!web.admits(parties("mail", "a")).unwrap());
        assert!(matches!(web.finish(), Err(TraceErrorKind::NoSuchWorkload { .. })));
        assert!(web.admits(parties("web", "a")).unwrap() && web.finish().is_ok());
    }
}
