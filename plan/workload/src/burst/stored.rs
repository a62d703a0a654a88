//! Burst curves as bytes, of which a chunk of a long trace leaves a few hundred.
//!
//! Hulls are differences of corners as numbers of variable length. The checks on reading are those of the form in
//! JSON, so that whatever is accepted merges.

use super::hull::HullPoint;
use super::{BurstCurve, curve};
use crate::bytes::{self, DamagedBytes, Reader};

const MARK: &[u8; 4] = b"tbc1";
const NAME: &str = "burst curve";

impl BurstCurve {
    /// Returns the curve as bytes, which are equal for equal curves; [`Self::from_bytes`] reads them.
    pub fn to_bytes(&self) -> Vec<u8> {
        bytes::sealed(MARK, |bytes| self.put(bytes))
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// When the bytes are something else or damaged, or no arrivals can have this curve.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DamagedBytes> {
        let mut reader = Reader::open(bytes, MARK, NAME)?;
        let curve = Self::take(&mut reader)?;
        reader.end()?;
        Ok(curve)
    }

    /// Appends the curve without mark and checksum.
    pub(crate) fn put(&self, bytes: &mut Vec<u8>) {
        let (scalars, chains) = self.plain();
        for scalar in scalars {
            bytes::put(bytes, scalar);
        }
        for chain in chains {
            bytes::put(bytes, chain.len() as u64);
            let mut last = HullPoint { x: 0, y: 0 };
            for point in chain {
                bytes::put(bytes, point.x - last.x);
                bytes::put(bytes, point.y - last.y);
                last = point;
            }
        }
    }

    /// Reads a curve without mark and checksum.
    pub(crate) fn take(reader: &mut Reader<'_>) -> Result<Self, DamagedBytes> {
        let [first, span, total, count] =
            [reader.number()?, reader.number()?, reader.number()?, reader.number()?];
        let last = first.checked_add(span).ok_or_else(beyond)?;
        let chains = [take_chain(reader)?, take_chain(reader)?, take_chain(reader)?];
        curve::checked(first, last, total, count, chains).map_err(DamagedBytes::new)
    }
}

fn take_chain(reader: &mut Reader<'_>) -> Result<Vec<HullPoint>, DamagedBytes> {
    let corners = reader.number()?;
    // Each corner has at least two bytes.
    if corners > reader.len() as u64 / 2 {
        return Err(DamagedBytes::new("burst curve: more corners than bytes"));
    }
    let mut chain = Vec::new();
    let mut last = HullPoint { x: 0, y: 0 };
    for _ in 0..corners {
        let x = last.x.checked_add(reader.number()?).ok_or_else(beyond)?;
        let y = last.y.checked_add(reader.number()?).ok_or_else(beyond)?;
        last = HullPoint { x, y };
        chain.push(last);
    }
    Ok(chain)
}

fn beyond() -> DamagedBytes {
    DamagedBytes::new("burst curve: a corner is beyond 64 bits")
}
