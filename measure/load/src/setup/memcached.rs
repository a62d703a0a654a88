//! Stores the values of a workload before the clock starts, so that its first reads find them.

use super::connector::Connector;
use super::stream::SetupStream;
use crate::codec::{ClientCodec as _, Decoded, IoRequest, KeyFormat, MemcachedCodec, ReplyStatus};
use crate::content::{ContentPattern, value_number};
use model::{Op, OperationError};
use std::net::SocketAddr;

/// Requests, and bytes, that are sent before their replies are read: enough to hide the round trip, and little enough
/// that neither side has to buffer much.
const BATCH_REQUESTS: usize = 64;
const BATCH_BYTES: usize = 1 << 20;

/// Which values are stored on a server.
pub(crate) struct StoredValues {
    pub(crate) server: SocketAddr,
    /// The number of keys for each size.
    pub(crate) keys: u32,
    pub(crate) format: KeyFormat,
    pub(crate) sizes: Vec<u32>,
}

/// Stores values by TCP, or by TLS if the workload uses it, with the contents of write 0.
pub(crate) fn store_values(
    connector: &Connector,
    pattern: ContentPattern,
    values: &StoredValues,
) -> Result<(), OperationError> {
    let connection = connector.connect_to_store(values.server, values.format.clone())?;
    store_all(connection, pattern, values).map_err(|why| {
        let hint = "the largest value is set by memcached's option -I, its memory by -m";
        OperationError::machine(format_args!("keys cannot be stored: {why}"))
            .hint(hint)
            .about(format_args!("workload {}", connector.workload_name))
    })
}

fn store_all(
    mut connection: (SetupStream, MemcachedCodec),
    pattern: ContentPattern,
    values: &StoredValues,
) -> Result<(), String> {
    let keys = 0..u64::from(values.keys);
    let values = values.sizes.iter().flat_map(|size| keys.clone().map(|key| (*size, key)));
    let mut out = Vec::new();
    let mut payload = Vec::new();
    let mut batch = Vec::new();
    for (id, (size, key)) in (0..).zip(values) {
        let request = IoRequest { op: Op::Write, size, address: key };
        payload.clear();
        pattern.append(&mut payload, value_number(size, key), 0, size as usize);
        connection.1.encode(&mut out, id, request, &payload)?;
        batch.push(request);
        if batch.len() >= BATCH_REQUESTS || out.len() > BATCH_BYTES {
            send_batch(&mut connection, &mut out, &mut batch)?;
        }
    }
    send_batch(&mut connection, &mut out, &mut batch)
}

/// Sends the encoded requests and waits for all replies; both buffers are empty afterwards.
fn send_batch(
    (stream, codec): &mut (SetupStream, MemcachedCodec),
    out: &mut Vec<u8>,
    batch: &mut Vec<IoRequest>,
) -> Result<(), String> {
    stream.send(&std::mem::take(out))?;
    let mut input = Vec::new();
    for request in batch.drain(..) {
        loop {
            match codec.decode(&input)? {
                Decoded::NeedMore(_) => stream.receive(&mut input)?,
                Decoded::Skip(len) => drop(input.drain(..len)),
                Decoded::Reply { len, payload_start, .. } => {
                    match codec.interpret(request, &input[..len], payload_start) {
                        ReplyStatus::Done(_) => {}
                        ReplyStatus::KeyMissing => return Err("a value was not stored".to_owned()),
                        ReplyStatus::Failed(why) => {
                            return Err(format!("a value of {} bytes: {why}", request.size));
                        }
                    }
                    input.drain(..len);
                    break;
                }
            }
        }
    }
    Ok(())
}
