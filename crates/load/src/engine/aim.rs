//! Where requests go that do not say so.

use crate::setup::Space;
use arrivals::split_seed;

/// Random places are multiples of a page, recorded ones of a sector, where there is room and the server allows it.
const PAGE: u64 = 4096;
const SECTOR: u64 = 512;

/// Chooses places for one workload.
#[derive(Debug)]
pub(crate) struct Aim {
    space: Space,
    seed: u64,
    /// Random numbers that were drawn.
    drawn: u64,
    /// End of the last sequential request.
    end: u64,
}

impl Aim {
    pub(crate) fn new(space: Space, seed: u64) -> Self {
        Self { space, seed, drawn: 0, end: 0 }
    }

    /// For a request with a recorded offset, or none. Offsets beyond the end wrap around.
    pub(crate) fn place(&mut self, offset: Option<u64>, size: u32) -> u64 {
        match self.space {
            Space::Path => 0,
            Space::Keys(keys) => match offset {
                Some(offset) => offset / PAGE % u64::from(keys),
                None => self.random(keys.into()),
            },
            Space::Bytes { len, block, .. } => {
                let room = len - u64::from(size);
                let wanted = if offset.is_some() { SECTOR } else { PAGE };
                let unit = if room >= wanted { wanted.next_multiple_of(block) } else { block };
                let slots = room / unit + 1;
                let slot = match offset {
                    Some(offset) => offset / unit % slots,
                    None => self.random(slots),
                };
                slot * unit
            }
        }
    }

    /// Behind the last such request; from the start again where there is no room.
    pub(crate) fn next(&mut self, size: u32) -> u64 {
        let (step, last) = match self.space {
            Space::Path => (0, 0),
            Space::Keys(keys) => (1, u64::from(keys) - 1),
            Space::Bytes { len, .. } => (u64::from(size), len - u64::from(size)),
        };
        let place = if self.end > last { 0 } else { self.end };
        self.end = place + step;
        place
    }

    /// Below `count`; the bias of the remainder is below 2⁻³² for counts below 2³².
    fn random(&mut self, count: u64) -> u64 {
        self.drawn += 1;
        split_seed(self.seed, self.drawn) % count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(len: u64, block: u64) -> Space {
        Space::Bytes { len, block, is_writable: true, is_coherent: true }
    }

    proptest! {
        #[test]
        fn places_are_inside_and_aligned(
            blocks in 1u64..100_000, block in prop_oneof![Just(1u64), Just(512), Just(4096), Just(65536)],
            size in 1u64..300, offset in proptest::option::of(any::<u64>()), seed: u64,
        ) {
            let size = size.min(blocks) * block;
            let mut aim = Aim::new(bytes(blocks * block, block), seed);
            for _ in 0..20 {
                let size = u32::try_from(size).unwrap();
                for place in [aim.place(offset, size), aim.next(size)] {
                    prop_assert!(place % block == 0 && place + u64::from(size) <= blocks * block);
                }
            }
        }
    }

    #[test]
    fn recorded_offsets_stay_and_wrap() {
        let mut aim = Aim::new(bytes(1 << 20, 1), 1);
        assert_eq!(aim.place(Some(8192), 4096), 8192);
        assert_eq!(aim.place(Some(8192 + (1 << 20) - 4096 + 512), 4096), 8192);
        assert_eq!([aim.next(4096), aim.next(4096)], [0, 4096]);
        let mut keys = Aim::new(Space::Keys(2), 1);
        assert_eq!([keys.next(9), keys.next(9), keys.next(9)], [0, 1, 0]);
        assert_eq!(keys.place(Some(3 * 4096), 9), 1);
    }

    #[test]
    fn random_places_reach_everything() {
        let mut aim = Aim::new(bytes(16 * 4096, 1), 3);
        let mut seen = [false; 16];
        for _ in 0..400 {
            seen[usize::try_from(aim.place(None, 4096) / 4096).unwrap()] = true;
        }
        assert!(seen.iter().all(|seen| *seen), "{seen:?}");
    }
}
