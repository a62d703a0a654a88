//! Questions to a server before and after a run: its limits and its memory, and the removal of stored values.

use crate::address_space::AddressSpace;
use crate::codec::KeyFormat;
use crate::setup::{Dialer, connect_nbd, receive, send};
use crate::workload::ClientHost;
use model::OperationError;
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use units::{Bytes, Nanos};
use wire::memcached::client;

/// Unit in which memcached assigns memory to size classes.
const SLAB_PAGE: u64 = 1 << 20;
/// Maximum length in bytes of an answer to `stats`.
const STATISTICS_MAX: usize = 1 << 20;
/// Number of keys that are deleted before the replies are read.
const DELETE_BATCH: usize = 64;

/// Size and abilities of an NBD export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NbdExportFacts {
    /// Length of the export.
    pub length: Bytes,
    /// Unit of offsets and lengths of requests.
    pub block: Bytes,
    /// False for a read-only export.
    pub is_writable: bool,
    /// True if the server promises that several connections see each other's writes.
    pub takes_connections: bool,
}

impl NbdExportFacts {
    /// Connects, negotiates and disconnects.
    ///
    /// # Errors
    /// When the server cannot be reached, speaks another protocol, or refuses the export.
    pub fn inspect(server: SocketAddr, export: &str) -> Result<Self, OperationError> {
        let connection = connect_nbd(&Dialer::new(ClientHost::default()), server, export)?;
        let AddressSpace::Bytes { len, block, is_writable, is_coherent } = connection.space else {
            unreachable!("an export consists of bytes")
        };
        Ok(Self { length: Bytes(len), block: Bytes(block), is_writable, takes_connections: is_coherent })
    }
}

/// Limits and memory of a memcached server, from its statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemcachedFacts {
    /// Maximum size of an item: key, value and header (`-I`).
    pub item_max: Bytes,
    /// Memory that no size class has taken yet. A server takes this before it evicts.
    pub unassigned: Bytes,
    /// False if a full server refuses values instead of evicting others (`-M`).
    pub evicts: bool,
    /// Items evicted since the server was started.
    pub evictions: u64,
}

impl MemcachedFacts {
    /// Connects, asks for statistics and disconnects.
    ///
    /// # Errors
    /// When the server cannot be reached, or does not answer with memcached's statistics.
    pub fn inspect(server: SocketAddr) -> Result<Self, OperationError> {
        let mut stream = Dialer::new(ClientHost::default()).dial(server)?;
        let general = statistics(&mut stream, "stats", server)?;
        let settings = statistics(&mut stream, "stats settings", server)?;
        let slabs = statistics(&mut stream, "stats slabs", server)?;
        let facts = facts_of(&general, &settings, &slabs);
        facts.ok_or_else(|| {
            OperationError::machine(format_args!("{server} does not report its memory and its largest item"))
                .hint("is it memcached 1.5 or newer itself, and not a proxy in front of it?")
        })
    }
}

fn facts_of(general: &Statistics, settings: &Statistics, slabs: &Statistics) -> Option<MemcachedFacts> {
    let number = |values: &Statistics, name: &str| values.get(name)?.parse::<u64>().ok();
    let pooled = number(general, "slab_global_page_pool").unwrap_or(0).saturating_mul(SLAB_PAGE);
    let limit = number(general, "limit_maxbytes")?;
    let assigned = number(slabs, "total_malloced")?.saturating_sub(pooled);
    Some(MemcachedFacts {
        item_max: Bytes(number(settings, "item_size_max")?),
        unassigned: Bytes(limit.saturating_sub(assigned)),
        evicts: settings.get("evictions").is_none_or(|value| value == "on"),
        evictions: number(general, "evictions")?,
    })
}

type Statistics = BTreeMap<String, String>;

/// Sends a command and returns the names and values of its answer.
fn statistics(
    stream: &mut TcpStream,
    command: &str,
    server: SocketAddr,
) -> Result<Statistics, OperationError> {
    ask(stream, command).map_err(|why| {
        OperationError::machine(format_args!("{server} does not answer as memcached does: {why}"))
            .hint("expected memcached's text protocol by TCP, without authentication (-S, -Y) and TLS (-Z)")
    })
}

fn ask(stream: &mut TcpStream, command: &str) -> Result<Statistics, String> {
    send(stream, format!("{command}\r\n").as_bytes())?;
    let mut input = Vec::new();
    loop {
        receive(stream, &mut input)?;
        if let Some(answer) = parse_statistics(&input)? {
            return Ok(answer);
        }
        if input.len() > STATISTICS_MAX {
            return Err(format!("more than {STATISTICS_MAX} bytes of statistics"));
        }
    }
}

/// Parses `STAT NAME VALUE` lines up to `END`; `None` if lines are missing.
fn parse_statistics(input: &[u8]) -> Result<Option<Statistics>, String> {
    let text = String::from_utf8_lossy(input);
    let mut values = Statistics::new();
    for line in text.split_inclusive('\n') {
        let Some(whole) = line.strip_suffix('\n') else {
            // The beginning of a line is enough to recognise another protocol that sends no line ends.
            let is_possible = ["STAT ", "END\r"].iter().any(|start| {
                let len = line.len().min(start.len());
                line.as_bytes()[..len] == start.as_bytes()[..len]
            });
            return if is_possible || line.len() < 5 { Ok(None) } else { Err(answered(line)) };
        };
        let whole = whole.trim_end();
        if whole == "END" {
            return Ok(Some(values));
        }
        let Some((name, value)) = whole.strip_prefix("STAT ").and_then(|pair| pair.split_once(' ')) else {
            return Err(answered(whole));
        };
        values.insert(name.to_owned(), value.to_owned());
    }
    Ok(None)
}

fn answered(line: &str) -> String {
    let shown: String = line.chars().take(60).collect();
    format!("the server answered '{}'", shown.escape_debug())
}

/// Deletes the values that runs with a workload of this name store on a memcached server: `(keys, size)` for each
/// size. Values that do not exist are skipped.
///
/// # Errors
/// When the server cannot be reached or refuses.
pub fn remove_values(
    server: SocketAddr,
    workload_name: &str,
    sizes: &[(u32, Bytes)],
) -> Result<(), OperationError> {
    let mut stream = Dialer::new(ClientHost::default()).dial(server)?;
    let format = KeyFormat::new(workload_name, None);
    let mut numbers = Vec::new();
    for &(keys, size) in sizes {
        let size =
            u32::try_from(size.0).map_err(|_| OperationError::input(format_args!("no value has {size}")))?;
        numbers.extend((0..u64::from(keys)).map(|number| (size, number)));
    }
    for batch in numbers.chunks(DELETE_BATCH) {
        delete_batch(&mut stream, &format, batch).map_err(|why| {
            OperationError::machine(format_args!("{server}: values cannot be deleted: {why}"))
        })?;
    }
    Ok(())
}

/// Measures the time that lookups of keys that are not there take a memcached server under as many connections as
/// given, each with one `get` of `keys` keys at a time: the duration divided by the number of requests.
///
/// # Errors
/// When the server cannot be reached or answers anything else.
pub fn time_missing_keys(
    server: SocketAddr,
    connections: usize,
    keys: u32,
    duration: Duration,
) -> Result<Nanos, OperationError> {
    let names: Vec<String> = (0..keys).map(|number| format!("tw:missing:{number:06}")).collect();
    let names: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
    let mut request = Vec::new();
    client::get(&mut request, &names);
    let dialer = Dialer::new(ClientHost::default());
    let streams: Result<Vec<TcpStream>, OperationError> =
        (0..connections).map(|_| dialer.dial(server)).collect();
    let streams = streams?;
    let begin = Instant::now();
    let count_until_end = |mut stream: TcpStream| -> Result<u64, String> {
        let mut count = 0;
        while begin.elapsed() < duration {
            send(&mut stream, &request)?;
            let mut input = Vec::new();
            while !input.ends_with(b"END\r\n") {
                receive(&mut stream, &mut input)?;
            }
            if input != b"END\r\n" {
                return Err(answered(String::from_utf8_lossy(&input).lines().next().unwrap_or("")));
            }
            count += 1;
        }
        Ok(count)
    };
    let counted: Result<u64, String> = std::thread::scope(|scope| {
        let spawn = |stream| scope.spawn(move || count_until_end(stream));
        let threads: Vec<_> = streams.into_iter().map(spawn).collect();
        threads.into_iter().map(|thread| thread.join().expect("a counting thread does not panic")).sum()
    });
    let elapsed = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let count = counted.map_err(|why| OperationError::machine(format_args!("{server}: lookups: {why}")))?;
    Ok(Nanos(elapsed.div_ceil(count.max(1))))
}

fn delete_batch(stream: &mut TcpStream, format: &KeyFormat, batch: &[(u32, u64)]) -> Result<(), String> {
    let mut out = Vec::new();
    let mut key = Vec::new();
    for &(size, number) in batch {
        format.write(&mut key, size, number);
        client::delete(&mut out, &key);
    }
    send(stream, &out)?;
    let mut input = Vec::new();
    while input.iter().filter(|&&byte| byte == b'\n').count() < batch.len() {
        receive(stream, &mut input)?;
    }
    let text = String::from_utf8_lossy(&input);
    let refused = text.lines().find(|line| !matches!(*line, "DELETED" | "NOT_FOUND"));
    refused.map_or(Ok(()), |line| Err(answered(line)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Statistics {
        parse_statistics(text.as_bytes()).unwrap().expect("a complete answer")
    }

    #[test]
    fn statistics_are_read_in_any_pieces() {
        let text = "STAT pid 1\r\nSTAT version 1.6.18 b\r\nEND\r\n";
        for end in 0..text.len() - 1 {
            assert_eq!(parse_statistics(&text.as_bytes()[..end]), Ok(None), "{end}");
        }
        assert_eq!(parsed(text)["version"], "1.6.18 b");
    }

    #[test]
    fn other_protocols_are_recognised_by_their_first_bytes() {
        for (answer, part) in [
            ("HTTP/1.1 400 Bad Request\r\n", "HTTP/1.1 400"),
            ("-ERR unknown command 'stats'\r\n", "-ERR"),
            ("CLIENT_ERROR unauthenticated\r\n", "unauthenticated"),
            ("NBDMAGICIHAVEOPT\0\u{3}", "NBDMAGICIHAVEOPT\\0"),
        ] {
            let why = parse_statistics(answer.as_bytes()).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
    }

    #[test]
    fn free_memory_is_what_no_class_has_taken() {
        let settings = parsed("STAT item_size_max 1048576\r\nSTAT evictions on\r\nEND\r\n");
        let slabs = parsed("STAT active_slabs 3\r\nSTAT total_malloced 50331648\r\nEND\r\n");
        let general = "STAT limit_maxbytes 67108864\r\nSTAT evictions 7\r\n";
        let facts = facts_of(&parsed(&format!("{general}END\r\n")), &settings, &slabs).unwrap();
        let expected = MemcachedFacts {
            item_max: Bytes(1 << 20),
            unassigned: Bytes(16 << 20),
            evicts: true,
            evictions: 7,
        };
        assert_eq!(facts, expected);
        let pooled = parsed(&format!("{general}STAT slab_global_page_pool 8\r\nEND\r\n"));
        let settings = parsed("STAT item_size_max 1048576\r\nSTAT evictions off\r\nEND\r\n");
        let facts = facts_of(&pooled, &settings, &slabs).unwrap();
        assert_eq!((facts.unassigned, facts.evicts), (Bytes(24 << 20), false));
        assert_eq!(facts_of(&Statistics::new(), &settings, &slabs), None);
    }
}
