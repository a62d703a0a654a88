//! Encodes the requests that a load generator sends: text `get` and `set`, meta `mg`, `ms` and `mn`. The value in a
//! reply stands between the head of its [`crate::Extent`] and the last two bytes.

/// Whether the server is to answer a `set`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmation {
    /// The server answers with `STORED`.
    Reply,
    /// The server does not answer.
    NoReply,
}

/// Appends a `get` of one or more keys.
pub fn get(out: &mut Vec<u8>, keys: &[&[u8]]) {
    assert!(!keys.is_empty(), "get has at least one key");
    out.extend(b"get");
    for key in keys {
        put_key(out, key);
    }
    out.extend(b"\r\n");
}

/// Appends a `set` of `value`, which expires after `expiry_s` seconds: at most 30 days, or never if zero.
pub fn set(out: &mut Vec<u8>, key: &[u8], flags: u32, expiry_s: u32, value: &[u8], confirm: Confirmation) {
    out.extend(b"set");
    put_key(out, key);
    let noreply = if confirm == Confirmation::NoReply { " noreply" } else { "" };
    out.extend(format!(" {flags} {expiry_s} {}{noreply}\r\n", value.len()).as_bytes());
    out.extend(value);
    out.extend(b"\r\n");
}

/// Appends a `delete`.
pub fn delete(out: &mut Vec<u8>, key: &[u8]) {
    out.extend(b"delete");
    put_key(out, key);
    out.extend(b"\r\n");
}

/// Appends a meta get (`mg`) with flags such as `v`, `q` and `O123`.
pub fn meta_get(out: &mut Vec<u8>, key: &[u8], flags: &[&str]) {
    out.extend(b"mg");
    put_key(out, key);
    put_flags(out, flags);
}

/// Appends a meta set (`ms`) of `value` with flags such as `T60`, `q` and `O123`.
pub fn meta_set(out: &mut Vec<u8>, key: &[u8], value: &[u8], flags: &[&str]) {
    out.extend(b"ms");
    put_key(out, key);
    out.extend(format!(" {}", value.len()).as_bytes());
    put_flags(out, flags);
    out.extend(value);
    out.extend(b"\r\n");
}

/// Appends a meta no-op (`mn`), whose reply says that every request before it is done.
pub fn noop(out: &mut Vec<u8>) {
    out.extend(b"mn\r\n");
}

fn put_key(out: &mut Vec<u8>, key: &[u8]) {
    assert!((1..=250).contains(&key.len()), "keys have 1 to 250 bytes");
    assert!(
        key.iter().all(|&byte| byte > b' ' && byte != 0x7f),
        "keys have neither spaces nor control characters"
    );
    out.push(b' ');
    out.extend(key);
}

fn put_flags(out: &mut Vec<u8>, flags: &[&str]) {
    for flag in flags {
        assert!(flag.bytes().all(|byte| byte.is_ascii_graphic()), "flags have no spaces");
        out.push(b' ');
        out.extend(flag.as_bytes());
    }
    out.extend(b"\r\n");
}
