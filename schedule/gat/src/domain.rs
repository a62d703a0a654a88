//! Hosts that may see tags: those of the system itself, by an allow list. Calls to all others carry none.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

/// An allow list of hosts, without regard to ports. As text: names, addresses and `*.SUFFIX`, separated
/// by commas, such as `store,10.0.0.7,*.svc.cluster.local`. `*` alone is every host. The empty list
/// allows none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TagDomain {
    patterns: Vec<HostPattern>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostPattern {
    Every,
    Exactly(String),
    /// Suffix with its leading dot.
    Below(String),
}

/// A pattern that does not match any host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPatternError {
    pattern: String,
}

impl fmt::Display for HostPatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' names no host: expected a name, an address, or *.SUFFIX, without scheme, port or path",
            self.pattern
        )
    }
}

impl std::error::Error for HostPatternError {}

impl FromStr for TagDomain {
    type Err = HostPatternError;

    fn from_str(text: &str) -> Result<Self, HostPatternError> {
        let patterns = text.split(',').map(str::trim).filter(|pattern| !pattern.is_empty()).map(parse);
        Ok(Self { patterns: patterns.collect::<Result<_, _>>()? })
    }
}

impl TagDomain {
    /// Returns true if a host, as in a URL or a `Host` header, with or without a port, may see tags.
    pub fn contains(&self, host: &str) -> bool {
        let host = canonical(without_port(host));
        !host.is_empty() && self.patterns.iter().any(|pattern| pattern.matches(&host))
    }
}

impl HostPattern {
    fn matches(&self, host: &str) -> bool {
        match self {
            Self::Every => true,
            Self::Exactly(name) => name == host,
            Self::Below(suffix) => host.len() > suffix.len() && host.ends_with(suffix),
        }
    }
}

fn parse(pattern: &str) -> Result<HostPattern, HostPatternError> {
    let error = || HostPatternError { pattern: pattern.to_owned() };
    if pattern == "*" {
        return Ok(HostPattern::Every);
    }
    let name = canonical(pattern.strip_prefix("*.").unwrap_or(pattern));
    let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_name = !name.is_empty() && !name.starts_with('.') && name.chars().all(is_good);
    if !is_name && name.parse::<Ipv6Addr>().is_err() {
        return Err(error());
    }
    Ok(if pattern.starts_with("*.") {
        HostPattern::Below(format!(".{name}"))
    } else {
        HostPattern::Exactly(name)
    })
}

/// Canonicalises a host: without brackets and the final dot, in lower case, and IPv6 addresses in one
/// spelling.
fn canonical(host: &str) -> String {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let name = bare.strip_suffix('.').unwrap_or(bare).to_ascii_lowercase();
    name.parse::<Ipv6Addr>().map_or(name, |address| address.to_string())
}

/// Removes the port. IPv6 addresses have several colons, and brackets if a port follows. An invalid port
/// stays, and matches nothing.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((before, port)) if before.ends_with(']') || !before.contains(':') => {
            if port.bytes().all(|byte| byte.is_ascii_digit()) { before } else { host }
        }
        _ => host,
    }
}
