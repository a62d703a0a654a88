//! What a server must hold: for every block the versions that may be there, and nothing else.
//!
//! A block has one writer. A write that was acknowledged leaves one version. A write whose connection died may have
//! happened, not have happened or have happened in part, and may still happen for [`QUARANTINE`]: until then its block
//! is not written again, and each byte read must be one of those that may be there.

use std::time::{Duration, Instant};

/// Longer than the proxy waits for a server on behalf of a client that has gone.
const QUARANTINE: Duration = Duration::from_secs(9);

/// What was read, as far as it must be there.
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
    /// Last one that was written.
    version: u32,
    /// What may be there; 0 is what was there in the beginning.
    may: Vec<u32>,
    /// Starts of the server before the acknowledged write was sent.
    starts: u32,
    busy: bool,
    quiet_until: Option<Instant>,
}

/// The blocks of one writer.
#[derive(Debug, Clone)]
pub struct Ledger {
    owner: u32,
    blocks: Vec<Block>,
    /// The server forgets when it is started again (memcached).
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

    /// A write was acknowledged; `starts` is that of when it was sent.
    pub fn written(&mut self, block: usize, starts: u32) {
        let state = &mut self.blocks[block];
        (state.busy, state.starts, state.may) = (false, starts, vec![state.version]);
    }

    /// A write may have happened.
    pub fn doubtful(&mut self, block: usize, now: Instant) {
        let state = &mut self.blocks[block];
        state.busy = false;
        state.may.push(state.version);
        state.quiet_until = Some(now + QUARANTINE);
    }

    /// A read brought nothing.
    pub fn not_read(&mut self, block: usize) {
        self.blocks[block].busy = false;
    }

    /// What a read brought; `None` for "there is none". `starts` is that of when it came.
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

/// Version 0 is zeroes; every other one is noise of its own.
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
