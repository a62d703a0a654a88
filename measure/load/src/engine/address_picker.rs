//! Chooses the addresses of requests.

use crate::address_space::AddressSpace;
use arrivals::split_seed;

/// Random addresses are multiples of a page and recorded ones multiples of a sector, where the file is large enough and
/// the server's block size allows it.
const PAGE: u64 = 4096;
const SECTOR: u64 = 512;

/// Chooses addresses for the requests of one workload: where they were recorded, at random, or sequentially.
#[derive(Debug)]
pub(super) struct AddressPicker {
    space: AddressSpace,
    seed: u64,
    /// Number of random numbers drawn so far.
    drawn: u64,
    /// The address after the last sequential request.
    sequential_end: u64,
}

impl AddressPicker {
    pub(super) fn new(space: AddressSpace, seed: u64) -> Self {
        Self { space, seed, drawn: 0, sequential_end: 0 }
    }

    /// The address of a request with a recorded offset, which wraps around at the end of the space, or a random address
    /// where no offset was recorded.
    pub(super) fn recorded_or_random(&mut self, offset: Option<u64>, size: u32) -> u64 {
        match self.space {
            AddressSpace::Nothing => 0,
            AddressSpace::Keys(keys) => match offset {
                Some(offset) => offset / PAGE % u64::from(keys),
                None => self.random_below(keys.into()),
            },
            AddressSpace::Bytes { len, block, .. } => {
                let last_start = len - u64::from(size);
                let wanted = if offset.is_some() { SECTOR } else { PAGE };
                let unit = if last_start >= wanted { wanted.next_multiple_of(block) } else { block };
                let slots = last_start / unit + 1;
                let slot = match offset {
                    Some(offset) => offset / unit % slots,
                    None => self.random_below(slots),
                };
                slot * unit
            }
        }
    }

    /// The address after the last sequential request, or the start of the space where it has no room left.
    pub(super) fn next_sequential(&mut self, size: u32) -> u64 {
        let (step, last_start) = match self.space {
            AddressSpace::Nothing => (0, 0),
            AddressSpace::Keys(keys) => (1, u64::from(keys) - 1),
            AddressSpace::Bytes { len, .. } => (u64::from(size), len - u64::from(size)),
        };
        let address = if self.sequential_end > last_start { 0 } else { self.sequential_end };
        self.sequential_end = address + step;
        address
    }

    /// A random number below `count`. The bias of the remainder is below 2⁻³² for counts below 2³².
    fn random_below(&mut self, count: u64) -> u64 {
        self.drawn += 1;
        split_seed(self.seed, self.drawn) % count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(len: u64, block: u64) -> AddressSpace {
        AddressSpace::Bytes { len, block, is_writable: true, is_coherent: true }
    }

    proptest! {
        #[test]
        fn addresses_are_inside_and_aligned(
            blocks in 1u64..100_000, block in prop_oneof![Just(1u64), Just(512), Just(4096), Just(65536)],
            size in 1u64..300, offset in proptest::option::of(any::<u64>()), seed: u64,
        ) {
            let size = size.min(blocks) * block;
            let mut picker = AddressPicker::new(bytes(blocks * block, block), seed);
            for _ in 0..20 {
                let size = u32::try_from(size).unwrap();
                for address in [picker.recorded_or_random(offset, size), picker.next_sequential(size)] {
                    prop_assert!(address % block == 0 && address + u64::from(size) <= blocks * block);
                }
            }
        }
    }

    #[test]
    fn recorded_offsets_stay_and_wrap() {
        let mut picker = AddressPicker::new(bytes(1 << 20, 1), 1);
        assert_eq!(picker.recorded_or_random(Some(8192), 4096), 8192);
        assert_eq!(picker.recorded_or_random(Some(8192 + (1 << 20) - 4096 + 512), 4096), 8192);
        assert_eq!([picker.next_sequential(4096), picker.next_sequential(4096)], [0, 4096]);
        let mut keys = AddressPicker::new(AddressSpace::Keys(2), 1);
        assert_eq!([keys.next_sequential(9), keys.next_sequential(9), keys.next_sequential(9)], [0, 1, 0]);
        assert_eq!(keys.recorded_or_random(Some(3 * 4096), 9), 1);
    }

    #[test]
    fn random_addresses_reach_everything() {
        let mut picker = AddressPicker::new(bytes(16 * 4096, 1), 3);
        let mut seen = [false; 16];
        for _ in 0..400 {
            seen[usize::try_from(picker.recorded_or_random(None, 4096) / 4096).unwrap()] = true;
        }
        assert!(seen.iter().all(|seen| *seen), "{seen:?}");
    }
}
