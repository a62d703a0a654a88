//! The expected contents of a server: for every block the versions that it may hold.
//!
//! A block has one writer. After an acknowledged write it holds one version. A write whose connection
//! died may have happened, in full, in part or not at all, and may still happen for [`QUARANTINE`]. Until
//! then its block is not written again, and each byte read must come from a possible version.

use std::time::{Duration, Instant};

/// Longer than the proxy waits for a server on behalf of a departed client.
const QUARANTINE: Duration = Duration::from_secs(9);

/// Verdict on data that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Right,
    /// An older version, or none.
    Lost,
    /// Bytes that were never written there.
    Corrupt,
}

#[derive(Debug, Clone)]
struct Block {
    len: usize,
    /// Latest version written.
    version: u32,
    /// Versions that the block may hold; 0 is the initial content.
    may: Vec<u32>,
    /// Number of starts of the server before the acknowledged write was sent.
    starts: u32,
    busy: bool,
    quiet_until: Option<Instant>,
}

/// The blocks of one writer.
#[derive(Debug, Clone)]
pub struct Ledger {
    owner: u32,
    blocks: Vec<Block>,
    /// The server loses its content in a restart (memcached).
    forgets: bool,
}

impl Ledger {
    pub fn new(owner: u32, sizes: impl Iterator<Item = usize>, forgets: bool) -> Self {
        let block = |len| Block { len, version: 0, may: vec![0], starts: 0, busy: false, quiet_until: None };
        Self { owner, blocks: sizes.map(block).collect(), forgets }
    }

    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    pub fn size(&self, block: usize) -> usize {
        self.blocks[block].len
    }

    pub fn may_read(&self, block: usize) -> bool {
        !self.blocks[block].busy
    }

    pub fn may_write(&mut self, block: usize, now: Instant) -> bool {
        let block = &mut self.blocks[block];
        if block.quiet_until.is_some_and(|until| until <= now) {
            block.quiet_until = None;
        }
        !block.busy && block.quiet_until.is_none()
    }

    pub fn begin_read(&mut self, block: usize) {
        self.blocks[block].busy = true;
    }

    /// Appends the next version of a block to `out`.
    pub fn begin_write(&mut self, block: usize, out: &mut Vec<u8>) {
        let owner = self.owner;
        let state = &mut self.blocks[block];
        state.busy = true;
        state.version += 1;
        fill(owner, block, state.version, state.len, out);
    }

    /// Records an acknowledged write; `starts` is the number of server starts when it was sent.
    pub fn written(&mut self, block: usize, starts: u32) {
        let state = &mut self.blocks[block];
        (state.busy, state.starts, state.may) = (false, starts, vec![state.version]);
    }

    /// Records a write that may have happened.
    pub fn doubtful(&mut self, block: usize, now: Instant) {
        let state = &mut self.blocks[block];
        state.busy = false;
        state.may.push(state.version);
        state.quiet_until = Some(now + QUARANTINE);
    }

    /// Records a read without an answer.
    pub fn not_read(&mut self, block: usize) {
        self.blocks[block].busy = false;
    }

    /// Checks the data of a read; `None` if the server had none. `starts` is the number of server starts
    /// when the answer came.
    pub fn read(&mut self, block: usize, found: Option<&[u8]>, starts: u32, now: Instant) -> Verdict {
        let owner = self.owner;
        let forgets = self.forgets;
        let state = &mut self.blocks[block];
        state.busy = false;
        let forgotten = forgets && state.starts != starts;
        let Some(found) = found else {
            return match state.may.contains(&0) || forgotten {
                true => Verdict::Right,
                false => Verdict::Lost,
            };
        };
        let contents: Vec<(u32, Vec<u8>)> =
            state.may.iter().map(|version| (*version, content(owner, block, *version, state.len))).collect();
        if let Some((version, _)) = contents.iter().find(|(_, content)| content == found) {
            let settled = state.quiet_until.is_none_or(|until| until <= now);
            if settled && !forgets {
                state.may = vec![*version];
            }
            return Verdict::Right;
        }
        let torn = contents.len() > 1
            && found.len() == state.len
            && (0..found.len()).all(|at| contents.iter().any(|(_, content)| content[at] == found[at]));
        if torn {
            return Verdict::Right;
        }
        let old = (0..state.version).any(|version| content(owner, block, version, state.len) == found);
        if old { Verdict::Lost } else { Verdict::Corrupt }
    }
}

fn content(owner: u32, block: usize, version: u32, len: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(len);
    fill(owner, block, version, len, &mut out);
    out
}

/// Fills the content of a version: zeroes for version 0, distinct noise for every other.
fn fill(owner: u32, block: usize, version: u32, len: usize, out: &mut Vec<u8>) {
    let end = out.len() + len;
    if version == 0 {
        return out.resize(end, 0);
    }
    let mut state = u64::from(owner) << 56 ^ (block as u64) << 32 ^ u64::from(version);
    while out.len() < end {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let bytes = (word ^ (word >> 31)).to_le_bytes();
        let count = (end - out.len()).min(8);
        out.extend_from_slice(&bytes[..count]);
    }
}
