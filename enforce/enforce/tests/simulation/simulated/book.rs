//! Outstanding answers of a client: their expected bytes, compared with those received.

use super::reader::number;
use std::collections::{BTreeMap, VecDeque};
use wire::Protocol;

/// An outstanding answer.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OwedAnswer {
    bytes: Vec<u8>,
    asked_at: u64,
}

/// Outstanding answers of a connection, with their totals.
#[derive(Debug)]
pub struct ReplyBook {
    protocol: Protocol,
    /// Answers that come in this order, before all others.
    ordered: VecDeque<OwedAnswer>,
    /// Answers that come in any order, by identifier.
    by_id: BTreeMap<u64, VecDeque<OwedAnswer>>,
    inbox: Vec<u8>,
    /// Number of outstanding answers.
    pub open: usize,
    /// Number of answers received.
    pub answered: u64,
}

/// Contents of received bytes.
#[derive(Debug, Default)]
pub struct ReceivedAnswers {
    /// Sending times of the requests that are now completely answered.
    pub asked_at: Vec<u64>,
    /// Identifiers of calls of the server.
    pub calls: Vec<u32>,
}

impl ReplyBook {
    /// Creates the book of a new connection.
    pub fn new(protocol: Protocol) -> Self {
        let ordered = VecDeque::new();
        let by_id = BTreeMap::new();
        Self { protocol, ordered, by_id, inbox: Vec::new(), open: 0, answered: 0 }
    }

    /// Adds an expected answer.
    pub fn owe(&mut self, id: Option<u64>, bytes: Vec<u8>, asked_at: u64) {
        if bytes.is_empty() {
            return;
        }
        self.open += 1;
        let answer = OwedAnswer { bytes, asked_at };
        match id {
            Some(id) => self.by_id.entry(id).or_default().push_back(answer),
            None => self.ordered.push_back(answer),
        }
    }

    /// Returns the sending time of the oldest unanswered request.
    pub fn oldest(&self) -> Option<u64> {
        let unordered = self.by_id.values().filter_map(|answers| answers.front());
        self.ordered.iter().take(1).chain(unordered).map(|answer| answer.asked_at).min()
    }

    /// Takes bytes from the server.
    ///
    /// # Errors
    /// The discrepancy.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<ReceivedAnswers, String> {
        self.inbox.extend_from_slice(bytes);
        let mut received = ReceivedAnswers::default();
        let mut at = 0;
        while at < self.inbox.len() {
            let rest = &self.inbox[at..];
            let Some(used) =
                take_answer(self.protocol, rest, &mut self.ordered, &mut self.by_id, &mut received)?
            else {
                break;
            };
            at += used;
        }
        self.inbox.drain(..at);
        self.open -= received.asked_at.len();
        self.answered += received.asked_at.len() as u64;
        Ok(received)
    }
}

/// Takes one answer from the start of `rest`, and returns its length if it is complete.
fn take_answer(
    protocol: Protocol,
    rest: &[u8],
    ordered: &mut VecDeque<OwedAnswer>,
    by_id: &mut BTreeMap<u64, VecDeque<OwedAnswer>>,
    received: &mut ReceivedAnswers,
) -> Result<Option<usize>, String> {
    let owed = if let Some(owed) = ordered.front() {
        owed
    } else {
        if rest.len() < 16 {
            return Ok(None);
        }
        let id = match protocol {
            Protocol::Memcached | Protocol::Resp => return Err("an answer to nothing".to_owned()),
            Protocol::Nbd => number(&rest[8..16]),
            Protocol::Nfs => number(&rest[4..8]),
            Protocol::Http1 => unreachable!("no front has this protocol"),
        };
        if protocol == Protocol::Nfs && number(&rest[8..12]) == 0 {
            let len = 4 + usize::try_from(number(&rest[..4]) & 0x7FFF_FFFF).expect("31 bits");
            if rest.len() < len {
                return Ok(None);
            }
            received.calls.push(u32::try_from(id).expect("32 bits"));
            return Ok(Some(len));
        }
        let owed = by_id.get(&id).and_then(|answers| answers.front());
        owed.ok_or_else(|| format!("an answer to {id:#x}, which is not asked or answered already"))?
    };
    let common = owed.bytes.len().min(rest.len());
    if owed.bytes[..common] != rest[..common] {
        let place = owed.bytes.iter().zip(rest).position(|(owed, came)| owed != came);
        return Err(format!("an answer of {} bytes differs at byte {place:?}", owed.bytes.len()));
    }
    if common < owed.bytes.len() {
        return Ok(None);
    }
    received.asked_at.push(owed.asked_at);
    if ordered.pop_front().is_none() {
        let id = if protocol == Protocol::Nbd { number(&rest[8..16]) } else { number(&rest[4..8]) };
        if let Some(answers) = by_id.get_mut(&id) {
            answers.pop_front();
            if answers.is_empty() {
                by_id.remove(&id);
            }
        }
    }
    Ok(Some(common))
}
