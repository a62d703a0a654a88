//! `name(argument, key=argument, …)` taken apart, every part with the column where it stands.

use super::TextError;

/// Brackets within brackets: more than anything sensible has, and no more than the stack bears.
const DEPTH_MAX: usize = 32;

/// A piece of the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Argument<'a> {
    pub(super) value: &'a str,
    /// Where it begins, from 1.
    pub(super) column: usize,
}

impl<'a> Argument<'a> {
    pub(super) fn whole(text: &'a str) -> Self {
        Self { value: text, column: 1 }.trimmed()
    }

    fn trimmed(self) -> Self {
        let rest = self.value.trim_start();
        let blanks = self.value[..self.value.len() - rest.len()].chars().count();
        Self { value: rest.trim_end(), column: self.column + blanks }
    }

    /// The part from byte `from` to byte `to`, without blanks around it.
    fn part(self, from: usize, to: usize) -> Self {
        let column = self.column + self.value[..from].chars().count();
        Self { value: &self.value[from..to], column }.trimmed()
    }

    /// What stands before and after the first blank.
    pub(super) fn split(self) -> Option<(Self, Self)> {
        let end = self.value.find(char::is_whitespace)?;
        Some((self.part(0, end), self.part(end, self.value.len())))
    }

    pub(super) fn expected(self, what: &str) -> TextError {
        let found = if self.value.is_empty() { "nothing".to_owned() } else { format!("'{}'", self.value) };
        TextError { column: self.column, message: format!("expected {what}, found {found}") }
    }
}

/// A name with arguments that have not been taken yet.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) name: &'a str,
    pub(super) column: usize,
    /// With their keys, in order.
    left: Vec<(Option<&'a str>, Argument<'a>)>,
    /// Behind the last argument.
    end: usize,
}

impl<'a> Call<'a> {
    pub(super) fn read(text: Argument<'a>, expected: &str) -> Result<Self, TextError> {
        let open = text.value.find('(').ok_or_else(|| text.expected(expected))?;
        let close = closing(text, open)?;
        let behind = text.part(close + 1, text.value.len());
        if !behind.value.is_empty() {
            return Err(behind.expected("nothing more"));
        }
        let left = arguments(text, open + 1, close).into_iter().map(keyed).collect();
        let end = text.part(close, close).column;
        Ok(Self { name: text.part(0, open).value, column: text.column, left, end })
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.left.iter().any(|(name, _)| *name == Some(key))
    }

    /// The argument of this key.
    pub(super) fn key(&mut self, key: &str) -> Result<Argument<'a>, TextError> {
        let found = self.left.iter().position(|(name, _)| *name == Some(key));
        found.map(|index| self.left.remove(index).1).ok_or_else(|| self.missing(&format!("{key}=…")))
    }

    /// The first argument without a key.
    pub(super) fn next(&mut self, what: &str) -> Result<Argument<'a>, TextError> {
        let found = self.left.iter().position(|(name, _)| name.is_none());
        found.map(|index| self.left.remove(index).1).ok_or_else(|| self.missing(what))
    }

    /// The argument of this key, or the first without any.
    pub(super) fn either(&mut self, key: &str) -> Result<Argument<'a>, TextError> {
        if self.has(key) { self.key(key) } else { self.next(&format!("{key}=…")) }
    }

    /// All arguments without a key.
    pub(super) fn rest(&mut self) -> impl Iterator<Item = Argument<'a>> + use<'a> {
        let (plain, keyed) = std::mem::take(&mut self.left).into_iter().partition(|(name, _)| name.is_none());
        self.left = keyed;
        let plain: Vec<_> = plain;
        plain.into_iter().map(|(_, argument)| argument)
    }

    fn missing(&self, what: &str) -> TextError {
        TextError { column: self.end, message: format!("expected {what} in {}(…)", self.name) }
    }

    /// Every argument must have been taken.
    pub(super) fn end(self) -> Result<(), TextError> {
        match self.left.first() {
            None => Ok(()),
            Some((_, argument)) => Err(argument.expected(&format!("no such argument of {}(…)", self.name))),
        }
    }
}

/// Where the bracket that opens at `open` closes.
fn closing(text: Argument<'_>, open: usize) -> Result<usize, TextError> {
    let mut depth = 0usize;
    for (index, c) in text.value.char_indices().skip_while(|(index, _)| *index < open) {
        match c {
            '(' if depth == DEPTH_MAX => {
                return Err(text.part(index, index + 1).expected("fewer brackets within brackets"));
            }
            '(' => depth += 1,
            ')' if depth == 1 => return Ok(index),
            ')' => depth -= 1,
            _ => {}
        }
    }
    let end = text.value.len();
    Err(text.part(end, end).expected("a closing bracket"))
}

/// What stands between commas that are in no inner bracket.
fn arguments(text: Argument<'_>, from: usize, to: usize) -> Vec<Argument<'_>> {
    let (mut found, mut start, mut depth) = (Vec::new(), from, 0usize);
    for (offset, c) in text.value[from..to].char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                found.push(text.part(start, from + offset));
                start = from + offset + 1;
            }
            _ => {}
        }
    }
    let last = text.part(start, to);
    if !(found.is_empty() && last.value.is_empty()) {
        found.push(last);
    }
    found
}

fn keyed(argument: Argument<'_>) -> (Option<&str>, Argument<'_>) {
    // An inner call has keys of its own, behind its bracket.
    let end = argument.value.find('(').unwrap_or(argument.value.len());
    match argument.value[..end].find('=') {
        None => (None, argument),
        Some(equals) => {
            let key = argument.part(0, equals).value;
            (Some(key), argument.part(equals + 1, argument.value.len()))
        }
    }
}
