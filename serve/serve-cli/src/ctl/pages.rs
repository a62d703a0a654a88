//! Lists of the controller, which come in pages: read one after the other, and printed as one document as they come.

use crate::client::{Client, ClientError, escaped};
use api::{DecisionDocument, DecisionPage, EventPage, ObservationPage, WorkloadDocument, WorkloadPage};
use cli::terminal;
use controller::{RecordedEvent, WorkloadObservation};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// A page of a list.
pub(super) trait Page: DeserializeOwned {
    type Entry: Serialize;

    /// Path of the list.
    const PATH: &str;
    /// Text before and after the entries, in which they are printed.
    const AROUND: [&str; 2];

    /// Returns the entries, and the value of `after` for the next page.
    fn parts(self) -> (Vec<Self::Entry>, Option<String>);
}

const LIST: [&str; 2] = ["[", "]"];

impl Page for WorkloadPage {
    type Entry = WorkloadDocument;

    const PATH: &str = "/v1/workloads";
    const AROUND: [&str; 2] = LIST;

    fn parts(self) -> (Vec<Self::Entry>, Option<String>) {
        (self.workloads, self.next)
    }
}

impl Page for ObservationPage {
    type Entry = WorkloadObservation;

    const PATH: &str = "/v1/observations";
    const AROUND: [&str; 2] = LIST;

    fn parts(self) -> (Vec<Self::Entry>, Option<String>) {
        (self.observations, self.next)
    }
}

impl Page for DecisionPage {
    type Entry = DecisionDocument;

    const PATH: &str = "/v1/decisions";
    const AROUND: [&str; 2] = ["{ \"decisions\": [", "] }"];

    fn parts(self) -> (Vec<Self::Entry>, Option<String>) {
        (self.decisions, self.next.map(|next| next.to_string()))
    }
}

impl Page for EventPage {
    type Entry = RecordedEvent;

    const PATH: &str = "/v1/events";
    const AROUND: [&str; 2] = ["{ \"events\": [", "] }"];

    fn parts(self) -> (Vec<Self::Entry>, Option<String>) {
        (self.events, self.next.map(|next| next.to_string()))
    }
}

/// Calls `each` with the entries of each page after a place.
pub(super) fn each_page<P: Page>(
    client: &Client,
    mut after: String,
    mut each: impl FnMut(Vec<P::Entry>),
) -> Result<(), ClientError> {
    loop {
        let query = if after.is_empty() { String::new() } else { format!("?after={}", escaped(&after)) };
        let page: P = client.get(&format!("{}{query}", P::PATH), Duration::ZERO)?;
        let (entries, next) = page.parts();
        each(entries);
        match next {
            Some(next) => after = next,
            None => return Ok(()),
        }
    }
}

/// Prints all pages after a place as one document of JSON.
pub(super) fn print_pages<P: Page>(client: &Client, after: String) -> Result<(), ClientError> {
    let [begin, end] = P::AROUND;
    let mut printed = 0;
    each_page::<P>(client, after, |entries| {
        for entry in entries {
            let text = serde_json::to_string_pretty(&entry).expect("a document is plain data");
            let before = if printed == 0 { begin } else { "," };
            terminal::print(&format!("{before}\n  {}", text.replace('\n', "\n  ")));
            printed += 1;
        }
    })?;
    terminal::print(&if printed == 0 { format!("{begin}{end}\n") } else { format!("\n{end}\n") });
    Ok(())
}
