//! What the comparisons share: seeded choices, and a conversation with a server until it is done.

use super::common::{Side, Watch};
use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

/// How long a server may say nothing before it is taken to be waiting.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Choices that are the same in every run, or others if the environment's `TAILWRIGHT_WIRE_SEED` is a number.
pub(super) struct CorpusChoices(u64);

impl CorpusChoices {
    pub(super) fn new(seed: u64) -> Self {
        let other = std::env::var("TAILWRIGHT_WIRE_SEED").ok().and_then(|other| other.parse::<u64>().ok());
        Self(seed + 1000 * other.unwrap_or(0))
    }

    /// A number below `of`.
    pub(super) fn below(&mut self, of: usize) -> usize {
        // Xorshift and a multiplication, by Vigna.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let value = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(value).expect("31 bits") % of
    }

    pub(super) fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    pub(super) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| u8::try_from(self.below(256)).expect("a byte")).collect()
    }
}

/// How a conversation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Done,
    /// The server hung up.
    Closed,
    /// The server waits for more.
    Silent,
}

/// Sends everything in pieces, and hears until `done` says so of all that was said.
pub(super) fn converse<S: Read + Write + Send>(
    stream: &mut S,
    mut writer: S,
    said: &[u8],
    choices: &mut CorpusChoices,
    mut done: impl FnMut(&[u8]) -> bool,
) -> (Vec<u8>, Ending) {
    let cuts: Vec<usize> = (0..choices.below(4)).map(|_| choices.below(said.len() + 1)).collect();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut ends = cuts;
            ends.push(said.len());
            ends.sort_unstable();
            let mut from = 0;
            for end in ends {
                // A server that hangs up does not listen any more.
                if writer.write_all(&said[from..end]).is_err() {
                    return;
                }
                from = end;
                std::thread::yield_now();
            }
        });
        let mut heard = Vec::new();
        let mut piece = [0; 60_000];
        loop {
            if done(&heard) {
                return (heard, Ending::Done);
            }
            match stream.read(&mut piece) {
                Ok(0) => return (heard, Ending::Closed),
                Ok(count) => heard.extend(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return (heard, Ending::Silent);
                }
                Err(_) => return (heard, Ending::Closed),
            }
        }
    })
}

/// Feeds what a server said in pieces of random lengths.
pub(super) fn feed_pieces(
    watch: &mut Watch,
    heard: &[u8],
    choices: &mut CorpusChoices,
) -> Result<(), String> {
    let mut rest = heard;
    while !rest.is_empty() {
        let count = (1 + choices.below(700)).min(rest.len());
        watch.feed(Side::Server, &rest[..count]).map_err(|error| error.to_string())?;
        rest = &rest[count..];
    }
    Ok(())
}

/// Counts what was compared, and says so in the end.
#[derive(Debug, Default)]
pub(super) struct ComparisonCount {
    pub(super) answered: usize,
    pub(super) silent: usize,
    /// The parser refuses the request, so that it never comes to the server.
    pub(super) refused: usize,
    /// The server hung up instead of answering.
    pub(super) closed: usize,
}

impl ComparisonCount {
    pub(super) fn print(&self, what: &str) {
        let Self { answered, silent, refused, closed } = self;
        let compared = answered + silent + closed;
        println!(
            "{what}: {compared} requests compared ({answered} answered, {silent} silent, {closed} hung up on), {refused} refused by the parser"
        );
        assert!(compared > 0, "something was compared");
    }
}
