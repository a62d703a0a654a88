//! Mistakes of a proxy, injected between a correct proxy and the world. The observer has to detect each
//! of them; otherwise its silence would prove nothing.

use super::dice::Dice;
use super::reader::RequestReader;
use serde_json::Value;
use std::collections::BTreeMap;

/// A mistake of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyMistake {
    /// It loses a request.
    LosesRequest,
    /// It sends a request twice.
    DuplicatesRequest,
    /// It changes the order of two requests of a connection.
    SwapsRequests,
    /// It changes a byte of a request.
    ChangesRequest,
    /// It loses bytes of an answer.
    LosesAnswer,
    /// It changes a byte of an answer.
    ChangesAnswer,
    /// It has more requests at the server than it may.
    ExceedsOutstanding,
    /// It ignores the order of priority.
    IgnoresPriority,
    /// It ignores the limits.
    IgnoresLimits,
    /// It continues with an old policy.
    MissesConfiguration,
    /// It closes a connection without a reason.
    ClosesClient,
    /// It polls without waiting or making progress.
    RunsInCircles,
    /// At a take-over it loses the bytes of requests that wait.
    DropsUnsentBytes,
    /// At a take-over it loses the bytes of replies that clients have not read.
    DropsUnreadBytes,
    /// At a take-over it grants new bursts.
    GrantsBursts,
}

impl ProxyMistake {
    /// Returns the beginnings of the violations that show the mistake.
    pub fn shows_as(self) -> &'static [&'static str] {
        match self {
            Self::LosesRequest => &["conservation", "level", "order", "progress"],
            Self::DuplicatesRequest | Self::ChangesRequest => &["conservation"],
            Self::SwapsRequests => &["order"],
            Self::LosesAnswer | Self::ChangesAnswer => &["stream", "answers"],
            Self::ExceedsOutstanding => &["outstanding"],
            Self::IgnoresPriority | Self::MissesConfiguration => &["level"],
            Self::IgnoresLimits => &["limit"],
            Self::ClosesClient => &["closed"],
            Self::RunsInCircles => &["circles"],
            Self::DropsUnsentBytes => &["conservation", "progress", "answers", "level", "closed", "order"],
            Self::DropsUnreadBytes => &["stream", "answers"],
            Self::GrantsBursts => &["limit"],
        }
    }

    /// Returns true for a mistake when another proxy takes over.
    pub fn is_at_take_over(self) -> bool {
        matches!(self, Self::DropsUnsentBytes | Self::DropsUnreadBytes | Self::GrantsBursts)
    }

    /// Makes the mistake in the document of a take-over.
    pub fn spoil(self, document: &mut Value) {
        let mut empty = |field: &str| {
            for session in document["sessions"].as_array_mut().into_iter().flatten() {
                session[field] = Value::Array(Vec::new());
            }
        };
        match self {
            Self::DropsUnsentBytes => empty("unsent"),
            Self::DropsUnreadBytes => empty("unread"),
            Self::GrantsBursts => document["limits"] = Value::Array(Vec::new()),
            _ => {}
        }
    }

    pub const ALL: [Self; 15] = [
        Self::LosesRequest,
        Self::DuplicatesRequest,
        Self::SwapsRequests,
        Self::ChangesRequest,
        Self::LosesAnswer,
        Self::ChangesAnswer,
        Self::ExceedsOutstanding,
        Self::IgnoresPriority,
        Self::IgnoresLimits,
        Self::MissesConfiguration,
        Self::ClosesClient,
        Self::RunsInCircles,
        Self::DropsUnsentBytes,
        Self::DropsUnreadBytes,
        Self::GrantsBursts,
    ];
}

/// Requests on their way from the proxy to the server, for tampering.
#[derive(Debug)]
pub struct Tampering {
    pub mistake: ProxyMistake,
    dice: Dice,
    /// Parsers of the requests in each link's bytes.
    readers: BTreeMap<usize, RequestReader>,
    kept: BTreeMap<usize, Vec<u8>>,
}

impl Tampering {
    /// Creates the tampering for a mistake.
    pub fn new(mistake: ProxyMistake, seed: u64) -> Self {
        Self { mistake, dice: Dice::new(seed, 9), readers: BTreeMap::new(), kept: BTreeMap::new() }
    }

    /// Tampers with bytes for the server. Passes on only whole requests.
    pub fn pass_to_server(
        &mut self,
        link: usize,
        bytes: &[u8],
        reader: impl FnOnce() -> RequestReader,
    ) -> Vec<u8> {
        use ProxyMistake as Mistake;
        let is_ours = matches!(
            self.mistake,
            Mistake::LosesRequest
                | Mistake::DuplicatesRequest
                | Mistake::SwapsRequests
                | Mistake::ChangesRequest
        );
        if !is_ours {
            return bytes.to_vec();
        }
        let reader = self.readers.entry(link).or_insert_with(reader);
        reader.feed(bytes);
        let mut out = Vec::new();
        while let Some((request, mut bytes)) = reader.next_with_bytes() {
            let strikes = request.work.is_data() && self.dice.one_in(4);
            match self.mistake {
                Mistake::LosesRequest if strikes => continue,
                Mistake::DuplicatesRequest if strikes => out.extend_from_slice(&bytes),
                Mistake::ChangesRequest if strikes => {
                    let place = bytes.len() - 3;
                    bytes[place] ^= 1;
                }
                Mistake::SwapsRequests if strikes && !self.kept.contains_key(&link) => {
                    self.kept.insert(link, bytes);
                    continue;
                }
                _ => {}
            }
            out.extend(bytes);
            out.extend(self.kept.remove(&link).unwrap_or_default());
        }
        out
    }

    /// Tampers with bytes for a client.
    pub fn pass_to_client(&mut self, bytes: &mut Vec<u8>) {
        let strikes = bytes.len() > 8 && self.dice.one_in(4);
        match self.mistake {
            ProxyMistake::LosesAnswer if strikes => bytes.truncate(bytes.len() - 5),
            ProxyMistake::ChangesAnswer if strikes => bytes[7] ^= 1,
            _ => {}
        }
    }

    /// Returns true if a client is now closed without a reason.
    pub fn closes_client(&mut self) -> bool {
        self.mistake == ProxyMistake::ClosesClient && self.dice.one_in(20)
    }
}
