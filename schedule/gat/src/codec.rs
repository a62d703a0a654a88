//! Reading, writing and stripping of the tag in headers.
//!
//! By default the tag is two members of the W3C `baggage` header, `tailwright-start` and
//! `tailwright-deadline`, whose values are nanoseconds in decimal digits. Tracing libraries pass baggage
//! on through services that do not know the tag. The alternative, where baggage is not wanted, is a
//! separate header: `NAME: START` or `NAME: START;deadline=DEADLINE`.
//!
//! All other members stay byte for byte, with their properties and in their order. Ours come first, so
//! that a library which drops members beyond its limits keeps them.

use crate::baggage::{self, BYTES_MAX, MEMBERS_MAX};
use crate::tag::{ReceivedTag, RequestTag, TagFault};
use std::borrow::Cow;
use std::fmt;

/// Reads, writes and strips tags; cheap to clone, and valid for requests and replies of any version of HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagCodec {
    form: TagForm,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TagForm {
    Baggage { start_key: Cow<'static, str>, deadline_key: Cow<'static, str> },
    Header { name: String },
}

/// A header value with a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenHeader {
    /// The one value that replaces all former ones.
    pub value: Vec<u8>,
    /// Number of other members dropped from the end because the value would exceed 8192 bytes or 180
    /// members.
    pub members_dropped: usize,
}

/// Change to make to the headers with our name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderChange {
    /// They contain nothing of ours: they stay as they are.
    Keep,
    /// They contain nothing else: all are removed.
    Remove,
    /// This one value replaces all.
    Replace(Vec<u8>),
}

/// A key or header name that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagNameError {
    name: String,
    expected: &'static str,
}

impl fmt::Display for TagNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' cannot be a name of tags: expected {}", self.name, self.expected)
    }
}

impl std::error::Error for TagNameError {}

impl Default for TagCodec {
    fn default() -> Self {
        Self::baggage()
    }
}

impl TagCodec {
    /// Default key of the start in baggage.
    pub const START_KEY: &str = "tailwright-start";
    /// Default key of the deadline in baggage.
    pub const DEADLINE_KEY: &str = "tailwright-deadline";

    /// Creates a codec for tags in baggage under the default keys.
    pub const fn baggage() -> Self {
        let start_key = Cow::Borrowed(Self::START_KEY);
        let deadline_key = Cow::Borrowed(Self::DEADLINE_KEY);
        Self { form: TagForm::Baggage { start_key, deadline_key } }
    }

    /// Creates a codec for tags in baggage under these keys.
    ///
    /// # Errors
    /// When a key contains characters other than lower-case letters, digits, `-`, `_` and `.`, or both
    /// are the same.
    pub fn baggage_with_keys(start_key: &str, deadline_key: &str) -> Result<Self, TagNameError> {
        let start_key = checked(start_key)?;
        let deadline_key = checked(deadline_key)?;
        if start_key == deadline_key {
            return Err(TagNameError { name: start_key, expected: "two different keys" });
        }
        Ok(Self { form: TagForm::Baggage { start_key: start_key.into(), deadline_key: deadline_key.into() } })
    }

    /// Creates a codec for tags in a separate header.
    ///
    /// # Errors
    /// When the name contains characters other than lower-case letters, digits, `-`, `_` and `.`, or is
    /// `baggage`.
    pub fn header(name: &str) -> Result<Self, TagNameError> {
        let name = checked(name)?;
        if name == "baggage" {
            return Err(TagNameError { name, expected: "a header that nobody else uses" });
        }
        Ok(Self { form: TagForm::Header { name } })
    }

    /// Returns the name of the header, in lower case.
    pub fn header_name(&self) -> &str {
        match &self.form {
            TagForm::Baggage { .. } => "baggage",
            TagForm::Header { name } => name,
        }
    }

    /// Returns true if a header with this name, in any case, has to be stripped; CGI-like gateways (WSGI
    /// among them) treat `_` as `-`.
    pub fn is_named(&self, header: &str) -> bool {
        let same = |(a, b): (u8, u8)| fold(a) == fold(b);
        let name = self.header_name();
        name.len() == header.len() && name.bytes().zip(header.bytes()).all(same)
    }

    /// Reads the tag from the headers with our name; `values` are in their order.
    pub fn read<'a>(&self, values: impl IntoIterator<Item = &'a [u8]>) -> ReceivedTag {
        let found = match &self.form {
            TagForm::Baggage { start_key, deadline_key } => {
                read_members(values, start_key.as_bytes(), deadline_key.as_bytes())
            }
            TagForm::Header { .. } => read_header(values),
        };
        match found {
            Err(fault) => ReceivedTag::Malformed(fault),
            Ok((Some(start_ns), deadline_ns)) => ReceivedTag::Tagged(RequestTag { start_ns, deadline_ns }),
            Ok((None, Some(_))) => ReceivedTag::Malformed(TagFault::DeadlineAlone),
            Ok((None, None)) => ReceivedTag::Untagged,
        }
    }

    /// Returns the value that replaces `values`: this tag, then all members that are not ours.
    pub fn write<'a>(&self, values: impl IntoIterator<Item = &'a [u8]>, tag: RequestTag) -> WrittenHeader {
        match &self.form {
            TagForm::Baggage { start_key, deadline_key } => {
                let mut value = format!("{start_key}={}", tag.start_ns).into_bytes();
                let mut count = 1;
                if let Some(deadline_ns) = tag.deadline_ns {
                    value.extend(format!(",{deadline_key}={deadline_ns}").into_bytes());
                    count += 1;
                }
                append_within_limits(value, count, self.others(values))
            }
            TagForm::Header { .. } => {
                let deadline = tag.deadline_ns.map(|ns| format!(";deadline={ns}")).unwrap_or_default();
                let value = format!("{}{deadline}", tag.start_ns).into_bytes();
                WrittenHeader { value, members_dropped: 0 }
            }
        }
    }

    /// Returns the change that removes the tag, and everything that might be taken for it, from `values`.
    pub fn strip<'a>(&self, values: impl IntoIterator<Item = &'a [u8]> + Clone) -> HeaderChange {
        if !baggage::members(values.clone()).any(|member| self.is_ours(member)) {
            return HeaderChange::Keep;
        }
        let kept: Vec<&[u8]> = self.others(values).collect();
        if kept.is_empty() { HeaderChange::Remove } else { HeaderChange::Replace(kept.join(&b',')) }
    }

    fn others<'a>(&self, values: impl IntoIterator<Item = &'a [u8]>) -> impl Iterator<Item = &'a [u8]> {
        baggage::members(values).filter(|member| !self.is_ours(member))
    }

    fn is_ours(&self, member: &[u8]) -> bool {
        match &self.form {
            TagForm::Baggage { start_key, deadline_key } => {
                baggage::may_be_taken_for(member, start_key.as_bytes())
                    || baggage::may_be_taken_for(member, deadline_key.as_bytes())
            }
            TagForm::Header { .. } => true,
        }
    }
}

fn checked(name: &str) -> Result<String, TagNameError> {
    let is_good =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.');
    if !name.is_empty() && name.len() <= 64 && name.bytes().all(is_good) {
        return Ok(name.to_owned());
    }
    let expected = "1 to 64 lower-case letters, digits, '-', '_' and '.'";
    Err(TagNameError { name: name.to_owned(), expected })
}

fn fold(byte: u8) -> u8 {
    if byte == b'_' { b'-' } else { byte.to_ascii_lowercase() }
}

/// Appends the others to `value`, which has `count` members, up to the first that does not fit.
fn append_within_limits<'a>(
    mut value: Vec<u8>,
    mut count: usize,
    mut others: impl Iterator<Item = &'a [u8]>,
) -> WrittenHeader {
    let mut members_dropped = 0;
    for member in others.by_ref() {
        if count == MEMBERS_MAX || value.len() + 1 + member.len() > BYTES_MAX {
            members_dropped = 1;
            break;
        }
        value.push(b',');
        value.extend(member);
        count += 1;
    }
    members_dropped += others.count();
    WrittenHeader { value, members_dropped }
}

type StartAndDeadline = (Option<u64>, Option<u64>);

fn read_members<'a>(
    values: impl IntoIterator<Item = &'a [u8]>,
    start_key: &[u8],
    deadline_key: &[u8],
) -> Result<StartAndDeadline, TagFault> {
    let mut start_ns = None;
    let mut deadline_ns = None;
    for (key, value) in baggage::members(values).filter_map(baggage::key_and_value) {
        if key == start_key {
            set_once(&mut start_ns, number(value)?)?;
        } else if key == deadline_key {
            set_once(&mut deadline_ns, deadline(value)?)?;
        }
    }
    Ok((start_ns, deadline_ns))
}

fn read_header<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Result<StartAndDeadline, TagFault> {
    let mut start_ns = None;
    let mut deadline_ns = None;
    for value in values {
        let mut parts = value.split(|byte| *byte == b';').map(baggage::trim);
        set_once(&mut start_ns, number(parts.next().unwrap_or_default())?)?;
        for due in parts.filter_map(|part| part.strip_prefix(b"deadline=")) {
            set_once(&mut deadline_ns, deadline(due)?)?;
        }
    }
    Ok((start_ns, deadline_ns))
}

/// Sets a value once; equal values may repeat.
fn set_once(place: &mut Option<u64>, value: u64) -> Result<(), TagFault> {
    match place.replace(value) {
        Some(former) if former != value => Err(TagFault::Conflict),
        _ => Ok(()),
    }
}

fn deadline(digits: &[u8]) -> Result<u64, TagFault> {
    match number(digits)? {
        0 => Err(TagFault::OutOfRange),
        ns => Ok(ns),
    }
}

fn number(digits: &[u8]) -> Result<u64, TagFault> {
    if digits.is_empty() || digits.len() > 20 || !digits.iter().all(u8::is_ascii_digit) {
        return Err(TagFault::NotANumber);
    }
    let append = |so_far: u64, digit: &u8| so_far.checked_mul(10)?.checked_add(u64::from(digit - b'0'));
    digits.iter().try_fold(0, append).ok_or(TagFault::OutOfRange)
}
