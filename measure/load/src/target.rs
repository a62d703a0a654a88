//! URLs of servers and of the data on them.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::str::FromStr;
use units::{Bytes, ParseError};
use wire::Protocol;

const EXPECTED: &str = "a target such as nfs://10.0.0.1/export/file, nbd://10.0.0.1:10809/disk, \
    memcached://10.0.0.1:11211, memcached+udp://10.0.0.1:11211, http://10.0.0.1:80/path or echo://10.0.0.1:7";
/// The port of the echo protocol.
const ECHO_PORT: u16 = 7;
const DEFAULT_FILE_SIZE: Bytes = Bytes(64 << 20);
const DEFAULT_KEYS: u32 = 1000;
/// Every key of a workload fits into the minimum; memcached refuses keys longer than the maximum.
const KEY_SIZES: RangeInclusive<usize> = 40..=250;

/// A server and the data that requests address on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadTarget {
    /// A file by NFSv3. The portmapper, port 111, says where MOUNT and NFS listen.
    Nfs {
        /// The address of the portmapper.
        server: IpAddr,
        /// The path that is mounted, such as `/export`.
        export: String,
        /// The name of a file in the root of the export. The file is created if it does not exist.
        file: String,
        /// The length of a created file. An existing file keeps its length unless it is empty.
        size: Bytes,
    },
    /// An export by NBD.
    Nbd {
        /// The address that the server listens on.
        server: SocketAddr,
        /// The name of the export, often empty.
        export: String,
    },
    /// Keys of memcached, which are stored before the clock starts.
    Memcached {
        /// The address that the server listens on.
        server: SocketAddr,
        /// Transport of requests and replies. Values are stored over TCP in any case.
        transport: MemcachedTransport,
        /// The number of distinct keys for each size of requests.
        keys: u32,
        /// The length of every key in bytes, from 40 to 250; `None` makes them as short as they can be.
        key_size: Option<usize>,
    },
    /// GET and PUT of one path by HTTP/1.1.
    Http {
        /// The address that the server listens on.
        server: SocketAddr,
        /// The path with its leading slash.
        path: String,
    },
    /// Bytes that the server sends back, over TCP.
    Echo {
        /// The address that the server listens on.
        server: SocketAddr,
    },
}

/// Transport of requests to memcached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemcachedTransport {
    /// A byte stream, with requests pipelined on it.
    Tcp,
    /// A datagram per request, behind memcached's frame header.
    Udp,
}

impl FromStr for LoadTarget {
    type Err = ParseError;

    /// `nfs://HOST/EXPORT/FILE?size=64MiB`, `nbd://HOST:PORT/NAME`, `memcached://HOST:PORT?keys=1000`,
    /// `memcached+udp://…`, `http://HOST:PORT/PATH`, `echo://HOST:PORT`. Ports, names and the part after a question mark
    /// may be left out; IPv6 addresses are written in brackets.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse(text.trim()).ok_or_else(|| ParseError::new(text, EXPECTED))
    }
}

fn parse(text: &str) -> Option<LoadTarget> {
    let (scheme, rest) = text.split_once("://")?;
    if scheme == "http" {
        let (host, path) = rest.find('/').map_or((rest, "/"), |slash| rest.split_at(slash));
        let is_plain = path.bytes().all(|byte| byte.is_ascii_graphic());
        return is_plain.then_some(LoadTarget::Http {
            server: address(host, Protocol::Http1.port())?,
            path: path.into(),
        });
    }
    let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    match scheme {
        "nfs" => {
            let (export, file) = path.rsplit_once('/')?;
            let size =
                query.map_or(Some(DEFAULT_FILE_SIZE), |query| query.strip_prefix("size=")?.parse().ok())?;
            let server = address(host, 0).filter(|address| address.port() == 0)?.ip();
            let is_named = !file.is_empty() && !export.is_empty();
            is_named.then(|| LoadTarget::Nfs {
                server,
                export: format!("/{export}"),
                file: file.into(),
                size,
            })
        }
        "nbd" if query.is_none() => {
            Some(LoadTarget::Nbd { server: address(host, Protocol::Nbd.port())?, export: path.into() })
        }
        "memcached" if path.is_empty() => memcached(host, query, MemcachedTransport::Tcp),
        "memcached+udp" if path.is_empty() => memcached(host, query, MemcachedTransport::Udp),
        "echo" if path.is_empty() && query.is_none() => {
            Some(LoadTarget::Echo { server: address(host, ECHO_PORT)? })
        }
        _ => None,
    }
}

fn memcached(host: &str, query: Option<&str>, transport: MemcachedTransport) -> Option<LoadTarget> {
    let mut keys = DEFAULT_KEYS;
    let mut key_size = None;
    for setting in query.into_iter().flat_map(|query| query.split('&')) {
        match setting.split_once('=')? {
            ("keys", count) => keys = count.parse().ok()?,
            ("key_size", size) => key_size = Some(size.parse().ok().filter(|size| KEY_SIZES.contains(size))?),
            _ => return None,
        }
    }
    Some(LoadTarget::Memcached {
        server: address(host, Protocol::Memcached.port())?,
        transport,
        keys,
        key_size,
    })
}

/// The address that `host` is, or the first one that it resolves to; `port` is the default.
fn address(host: &str, port: u16) -> Option<SocketAddr> {
    if let Ok(address) = host.parse::<SocketAddr>() {
        return Some(address);
    }
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Some(SocketAddr::new(ip, port));
    }
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) => (name, port.parse().ok()?),
        None => (host, port),
    };
    (!name.is_empty()).then_some(())?;
    (name, port).to_socket_addrs().ok()?.next()
}

impl fmt::Display for LoadTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nfs { server, export, file, size } => {
                let host = SocketAddr::new(*server, 0).to_string();
                let host = host.strip_suffix(":0").unwrap_or(&host);
                write!(f, "nfs://{host}{export}/{file}?size={}", size.0)
            }
            Self::Nbd { server, export } => write!(f, "nbd://{server}/{export}"),
            Self::Memcached { server, transport, keys, key_size } => {
                let scheme = match transport {
                    MemcachedTransport::Tcp => "memcached",
                    MemcachedTransport::Udp => "memcached+udp",
                };
                write!(f, "{scheme}://{server}?keys={keys}")?;
                key_size.map_or(Ok(()), |size| write!(f, "&key_size={size}"))
            }
            Self::Http { server, path } => write!(f, "http://{server}{path}"),
            Self::Echo { server } => write!(f, "echo://{server}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_parsed_and_printed() {
        let nfs = LoadTarget::Nfs {
            server: [10, 0, 0, 1].into(),
            export: "/a/b".into(),
            file: "f".into(),
            size: Bytes(1 << 20),
        };
        let server_at = |port| SocketAddr::from(([10, 0, 0, 1], port));
        let memcached = |port, transport, keys, key_size| LoadTarget::Memcached {
            server: server_at(port),
            transport,
            keys,
            key_size,
        };
        for (text, target) in [
            ("nfs://10.0.0.1/a/b/f?size=1MiB", nfs),
            ("nbd://10.0.0.1", LoadTarget::Nbd { server: server_at(10809), export: String::new() }),
            ("nbd://10.0.0.1:99/x/y", LoadTarget::Nbd { server: server_at(99), export: "x/y".into() }),
            ("memcached://10.0.0.1", memcached(11211, MemcachedTransport::Tcp, 1000, None)),
            ("memcached://10.0.0.1:7?keys=5", memcached(7, MemcachedTransport::Tcp, 5, None)),
            (
                "memcached+udp://10.0.0.1?key_size=64&keys=2",
                memcached(11211, MemcachedTransport::Udp, 2, Some(64)),
            ),
            ("echo://10.0.0.1", LoadTarget::Echo { server: server_at(7) }),
            ("http://10.0.0.1", LoadTarget::Http { server: server_at(80), path: "/".into() }),
            (
                "http://10.0.0.1:8080/a?b=c",
                LoadTarget::Http { server: server_at(8080), path: "/a?b=c".into() },
            ),
        ] {
            assert_eq!(text.parse(), Ok(target.clone()), "{text}");
            assert_eq!(target.to_string().parse(), Ok(target), "{text}");
        }
        assert!(matches!("nbd://[::1]:5/x".parse(), Ok(LoadTarget::Nbd { server, .. }) if server.is_ipv6()));
        assert!(
            matches!("nfs://[fe80::1]/e/f".parse(), Ok(LoadTarget::Nfs { server, .. }) if server.is_ipv6())
        );
    }

    #[test]
    fn malformed_targets_are_refused() {
        for text in [
            "",
            "nbd",
            "nbd://",
            "ftp://10.0.0.1/",
            "nfs://10.0.0.1/file",
            "nfs://10.0.0.1/e/",
            "nfs://10.0.0.1:5/e/f",
            "nbd://10.0.0.1:x/y",
            "memcached://10.0.0.1/x",
            "memcached://10.0.0.1?keys=-1",
            "memcached://10.0.0.1?key_size=39",
            "memcached+udp://10.0.0.1?key_size=251",
            "memcached://10.0.0.1?keys=1&",
            "echo://10.0.0.1/x",
            "http://10.0.0.1/a b",
        ] {
            assert!(text.parse::<LoadTarget>().is_err(), "{text}");
        }
    }
}
