//! Keys that are there before the clock starts.

use super::{Opened, Site, socket};
use crate::content::Pattern;
use crate::speak::{Ask, Heard, Said};
use model::{Op, OperationError};

/// Requests that are sent before their answers are waited for.
const BATCH: u64 = 64;
const BATCH_BYTES: usize = 1 << 20;

/// Stores `keys` values of each size.
pub(crate) fn store(site: &Site, pattern: Pattern, sizes: &[u32], keys: u32) -> Result<(), OperationError> {
    let opened = site.open()?;
    let blocking = opened.stream.set_nonblocking(false).map_err(|error| error.to_string());
    blocking.and_then(|()| store_all(opened, pattern, sizes, keys)).map_err(|why| {
        let hint = "the largest value is set by memcached's option -I, its memory by -m";
        OperationError::machine(format_args!("keys cannot be stored: {why}"))
            .hint(hint)
            .about(format_args!("workload {}", site.name))
    })
}

/// The number under which contents know a value: keys of all sizes are told apart.
pub(crate) fn block(size: u32, key: u64) -> u64 {
    u64::from(size) << 32 | key
}

fn store_all(mut opened: Opened, pattern: Pattern, sizes: &[u32], keys: u32) -> Result<(), String> {
    let all = sizes.iter().flat_map(|size| (0..u64::from(keys)).map(|key| (*size, key)));
    let (mut out, mut data, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
    for (id, (size, place)) in (0..).zip(all) {
        let ask = Ask { op: Op::Write, size, place };
        data.clear();
        pattern.put(&mut data, block(size, place), 0, size as usize);
        opened.speaker.ask(&mut out, id, ask, &data)?;
        waiting.push(ask);
        if waiting.len() as u64 >= BATCH || out.len() > BATCH_BYTES {
            settle(&mut opened, &mut out, &mut waiting)?;
        }
    }
    settle(&mut opened, &mut out, &mut waiting)
}

/// Sends and waits for the answers.
fn settle(opened: &mut Opened, out: &mut Vec<u8>, waiting: &mut Vec<Ask>) -> Result<(), String> {
    socket::send(&mut opened.stream, &std::mem::take(out))?;
    let mut input = Vec::new();
    for ask in waiting.drain(..) {
        loop {
            match opened.speaker.hear(&input)? {
                Heard::More(_) => socket::receive(&mut opened.stream, &mut input)?,
                Heard::Skip(used) => drop(input.drain(..used)),
                Heard::Answer { used, head, .. } => {
                    match opened.speaker.said(ask, &input[..used], head) {
                        Said::Done(_) => {}
                        Said::Missed => return Err("a value was not stored".to_owned()),
                        Said::Failed(why) => return Err(format!("a value of {} bytes: {why}", ask.size)),
                    }
                    input.drain(..used);
                    break;
                }
            }
        }
    }
    Ok(())
}
