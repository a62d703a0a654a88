//! URLs of servers and of the data on them.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use units::{Bytes, ParseError};
use wire::Protocol;

const EXPECTED: &str = "a target such as nfs://10.0.0.1/export/file, nbd://10.0.0.1:10809/disk, \
    memcached://10.0.0.1:11211, memcached+udp://10.0.0.1:11211, memcached+tls://name:11211, \
    http://10.0.0.1:80/path, https://name/path, http+h2://name/path, https+h2://name/path, https+h1://name/path, \
    grpc://name:50051/package.Service/Method, grpcs://name:443/package.Service/Method or echo://10.0.0.1:7";
/// The port of the echo protocol.
const ECHO_PORT: u16 = 7;
const HTTPS_PORT: u16 = 443;
/// The port of gRPC's examples; it has none of its own.
const GRPC_PORT: u16 = 50051;
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
    /// GET and PUT of one path.
    Http {
        /// The address that the server listens on.
        server: SocketAddr,
        /// The host and port that requests name, as the target was written.
        host: String,
        /// The path with its leading slash.
        path: String,
        /// The version by which requests are sent.
        version: HttpVersion,
    },
    /// Unary calls of one method of gRPC.
    Grpc {
        /// The address that the server listens on.
        server: SocketAddr,
        /// The host and port that calls name, as the target was written.
        host: String,
        /// The path `/package.Service/Method`.
        path: String,
        /// The message that each call sends, as encoded protobuf.
        message: Vec<u8>,
    },
    /// A target whose connections are encrypted: HTTP, gRPC, or memcached by TCP.
    Tls {
        /// The name that the certificate has to be for, and that is sent to the server (SNI).
        name: String,
        /// The check of the server's certificate.
        check: CertificateCheck,
        /// Target inside of TLS.
        target: Box<LoadTarget>,
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

/// The version of HTTP by which requests are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/1.1.
    One,
    /// HTTP/2, which the server is known to speak, or has to agree to by TLS.
    Two,
    /// The one that the server chooses by TLS.
    Negotiated,
}

/// The check of a server's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateCheck {
    /// It has to be from an authority that this machine trusts.
    System,
    /// It has to be from an authority whose certificate is in this file (PEM).
    Authorities(PathBuf),
    /// Any certificate is accepted.
    Nothing,
}

impl LoadTarget {
    /// Returns the target without the TLS around it.
    pub fn inside_tls(&self) -> &Self {
        match self {
            Self::Tls { target, .. } => target,
            plain => plain,
        }
    }
}

impl FromStr for LoadTarget {
    type Err = ParseError;

    /// `nfs://HOST/EXPORT/FILE?size=64MiB`, `nbd://HOST:PORT/NAME`, `memcached://HOST:PORT?keys=1000`,
    /// `memcached+udp://…`, `memcached+tls://…`, `http://HOST:PORT/PATH`, `http+h2://…`, `https://…`, `https+h1://…`,
    /// `https+h2://…`, `grpc://HOST:PORT/PACKAGE.SERVICE/METHOD`, `grpcs://…`, `echo://HOST:PORT`. Ports, names and the
    /// part after a question mark may be left out; IPv6 addresses are written in brackets. Certificates are checked as
    /// the system does, and messages are empty.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse(text.trim()).ok_or_else(|| ParseError::new(text, EXPECTED))
    }
}

fn parse(text: &str) -> Option<LoadTarget> {
    let (scheme, rest) = text.split_once("://")?;
    match scheme {
        "http" => return http(rest, HttpVersion::One, Protocol::Http1.port()),
        "http+h2" => return http(rest, HttpVersion::Two, Protocol::Http1.port()),
        "https" => return encrypted(rest, http(rest, HttpVersion::Negotiated, HTTPS_PORT)?),
        "https+h1" => return encrypted(rest, http(rest, HttpVersion::One, HTTPS_PORT)?),
        "https+h2" => return encrypted(rest, http(rest, HttpVersion::Two, HTTPS_PORT)?),
        "grpc" => return grpc(rest, GRPC_PORT),
        "grpcs" => return encrypted(rest, grpc(rest, HTTPS_PORT)?),
        _ => {}
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
        "memcached+tls" if path.is_empty() => {
            encrypted(host, memcached(host, query, MemcachedTransport::Tcp)?)
        }
        "echo" if path.is_empty() && query.is_none() => {
            Some(LoadTarget::Echo { server: address(host, ECHO_PORT)? })
        }
        _ => None,
    }
}

fn http(rest: &str, version: HttpVersion, port: u16) -> Option<LoadTarget> {
    let (host, path) = rest.find('/').map_or((rest, "/"), |slash| rest.split_at(slash));
    let is_plain = rest.bytes().all(|byte| byte.is_ascii_graphic());
    let server = address(host, port)?;
    is_plain.then_some(LoadTarget::Http { server, host: host.into(), path: path.into(), version })
}

fn grpc(rest: &str, port: u16) -> Option<LoadTarget> {
    let (host, path) = rest.split_at(rest.find('/')?);
    let (service, method) = path[1..].split_once('/')?;
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._".contains(&byte))
    };
    let server = address(host, port)?;
    (is_name(service) && is_name(method)).then_some(LoadTarget::Grpc {
        server,
        host: host.into(),
        path: path.into(),
        message: Vec::new(),
    })
}

/// Encrypts a target at `rest`, which begins with its host.
fn encrypted(rest: &str, target: LoadTarget) -> Option<LoadTarget> {
    let host = rest.split('/').next()?;
    // An IPv6 address has colons itself.
    let name = match host.strip_prefix('[') {
        Some(bracketed) => bracketed.split_once(']')?.0,
        None => host.split(':').next()?,
    };
    Some(LoadTarget::Tls { name: name.into(), check: CertificateCheck::System, target: Box::new(target) })
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
            Self::Http { host, path, version: HttpVersion::Two, .. } => write!(f, "http+h2://{host}{path}"),
            Self::Http { host, path, .. } => write!(f, "http://{host}{path}"),
            Self::Grpc { host, path, .. } => write!(f, "grpc://{host}{path}"),
            Self::Tls { name, target, .. } => fmt_encrypted(f, name, target),
            Self::Echo { server } => write!(f, "echo://{server}"),
        }
    }
}

fn fmt_encrypted(f: &mut fmt::Formatter<'_>, name: &str, target: &LoadTarget) -> fmt::Result {
    match target {
        LoadTarget::Http { host, path, version, .. } => {
            let scheme = match version {
                HttpVersion::One => "https+h1",
                HttpVersion::Two => "https+h2",
                HttpVersion::Negotiated => "https",
            };
            write!(f, "{scheme}://{host}{path}")
        }
        LoadTarget::Grpc { host, path, .. } => write!(f, "grpcs://{host}{path}"),
        LoadTarget::Memcached { server, .. } => {
            let plain = target.to_string();
            let settings = plain.split_once('?').map(|(_, settings)| settings).unwrap_or_default();
            let host = if name.contains(':') { format!("[{name}]") } else { name.to_owned() };
            write!(f, "memcached+tls://{host}:{}?{settings}", server.port())
        }
        other => write!(f, "{other}"),
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
        let http = |host: &str, port, path: &str, version| LoadTarget::Http {
            server: server_at(port),
            host: host.into(),
            path: path.into(),
            version,
        };
        let grpc = |host: &str, port| LoadTarget::Grpc {
            server: server_at(port),
            host: host.into(),
            path: "/a.B/C".into(),
            message: Vec::new(),
        };
        let encrypted = |target| LoadTarget::Tls {
            name: "10.0.0.1".into(),
            check: CertificateCheck::System,
            target: Box::new(target),
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
            ("http://10.0.0.1", http("10.0.0.1", 80, "/", HttpVersion::One)),
            ("http://10.0.0.1:8080/a?b=c", http("10.0.0.1:8080", 8080, "/a?b=c", HttpVersion::One)),
            ("http+h2://10.0.0.1", http("10.0.0.1", 80, "/", HttpVersion::Two)),
            ("https://10.0.0.1/x", encrypted(http("10.0.0.1", 443, "/x", HttpVersion::Negotiated))),
            ("https+h1://10.0.0.1:4/", encrypted(http("10.0.0.1:4", 4, "/", HttpVersion::One))),
            ("https+h2://10.0.0.1:4/", encrypted(http("10.0.0.1:4", 4, "/", HttpVersion::Two))),
            ("grpc://10.0.0.1/a.B/C", grpc("10.0.0.1", 50051)),
            ("grpcs://10.0.0.1:8/a.B/C", encrypted(grpc("10.0.0.1:8", 8))),
            (
                "memcached+tls://10.0.0.1:8?keys=3&key_size=40",
                encrypted(memcached(8, MemcachedTransport::Tcp, 3, Some(40))),
            ),
        ] {
            assert_eq!(text.parse(), Ok(target.clone()), "{text}");
            assert_eq!(target.to_string().parse(), Ok(target), "{text}");
        }
        for (text, expected) in [("https://[::1]:5/x", "::1"), ("https://localhost/x", "localhost")] {
            let target: LoadTarget = text.parse().unwrap();
            assert!(
                matches!(&target, LoadTarget::Tls { name, .. } if name == expected),
                "{text}: {target:?}"
            );
            assert_eq!(target.to_string(), text);
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
            "https://",
            "grpc://10.0.0.1",
            "grpc://10.0.0.1/a.B",
            "grpc://10.0.0.1/a.B/C/D",
            "grpcs://10.0.0.1/a.B/",
            "memcached+tls://10.0.0.1/x",
        ] {
            assert!(text.parse::<LoadTarget>().is_err(), "{text}");
        }
    }
}
