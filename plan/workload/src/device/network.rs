//! Bytes that a request moves over the network.

use model::{Op, Request, Stage};
use serde::{Deserialize, Serialize};
use units::{Bytes, MILLI, Work};

/// Bytes that a request moves over the network, by direction (thesis §2.3.2).
///
/// A read sends a small message in and its data out; a write sends its data in and a small message out.
/// Every message has a header; the payload is multiplied by a factor for framing, acknowledgements and
/// the like. Factors are integer thousandths, so that [`NetworkModel::work`] is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkModel {
    /// The fixed size of a message in either direction, without payload.
    pub header: Bytes,
    /// Thousandths of a byte sent per payload byte in the direction of the data; 1100 adds 10 %.
    pub data_thousandths: u32,
    /// Thousandths of a byte sent per payload byte against the direction of the data.
    pub other_thousandths: u32,
}

impl Default for NetworkModel {
    /// The reference set-up (NFS over Ethernet): 200 + 1.1·size bytes with the data, 200 + 0.025·size
    /// against it.
    fn default() -> Self {
        Self { header: Bytes(200), data_thousandths: 1100, other_thousandths: 25 }
    }
}

impl NetworkModel {
    /// The work of `request` at a network stage in milli-bytes. It is exact, and saturates beyond 16 PB.
    ///
    /// # Panics
    /// When `stage` is [`Stage::Storage`], whose work a device profile knows.
    pub fn work(&self, stage: Stage, request: &Request) -> Work {
        let with_the_data = match (stage, request.op) {
            (Stage::NetworkIn, Op::Write) | (Stage::NetworkOut, Op::Read) => true,
            (Stage::NetworkIn, Op::Read) | (Stage::NetworkOut, Op::Write) => false,
            (Stage::Storage, _) => panic!("a network has no work at the storage stage"),
        };
        let factor = if with_the_data { self.data_thousandths } else { self.other_thousandths };
        let payload = request.size.0.saturating_mul(u64::from(factor));
        Work(self.header.0.saturating_mul(MILLI).saturating_add(payload))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::testing::request;

    #[test]
    fn reference_set_up_by_hand() {
        let network = NetworkModel::default();
        for (op, stage, milli_bytes) in [
            (Op::Read, Stage::NetworkOut, 200_000 + 4_505_600),
            (Op::Read, Stage::NetworkIn, 200_000 + 102_400),
            (Op::Write, Stage::NetworkIn, 200_000 + 4_505_600),
            (Op::Write, Stage::NetworkOut, 200_000 + 102_400),
        ] {
            assert_eq!(network.work(stage, &request(op, 4096)), Work(milli_bytes), "{op:?} {stage}");
        }
    }

    #[test]
    fn an_absurd_size_saturates() {
        let network = NetworkModel::default();
        assert_eq!(network.work(Stage::NetworkOut, &request(Op::Read, u64::MAX)), Work(u64::MAX));
    }

    #[test]
    #[should_panic(expected = "storage stage")]
    fn storage_is_not_a_network() {
        NetworkModel::default().work(Stage::Storage, &request(Op::Read, 1));
    }
}
