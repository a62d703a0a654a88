//! Parser of the grammar `name(argument, key=argument, …)`; every part keeps its column for error
//! messages.

use super::error::ExpressionError;

/// Maximum nesting of brackets. It bounds the recursion, and no sensible text reaches it.
const DEPTH_MAX: usize = 32;

/// A piece of the text that stands for one value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Argument<'a> {
    pub(super) value: &'a str,
    /// The column of its first character, from 1.
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

    /// The parts before and after the first blank, if there is one.
    pub(super) fn split(self) -> Option<(Self, Self)> {
        let end = self.value.find(char::is_whitespace)?;
        Some((self.part(0, end), self.part(end, self.value.len())))
    }

    pub(super) fn expected(self, what: &str) -> ExpressionError {
        let found = if self.value.is_empty() { "nothing".to_owned() } else { format!("'{}'", self.value) };
        ExpressionError { column: self.column, message: format!("expected {what}, found {found}") }
    }
}

/// A name with arguments that have not been taken yet.
#[derive(Debug)]
pub(super) struct CallExpression<'a> {
    pub(super) name: &'a str,
    pub(super) column: usize,
    /// Arguments not yet taken, with their keys, in order.
    left: Vec<(Option<&'a str>, Argument<'a>)>,
    /// The column behind the last argument.
    end: usize,
}

impl<'a> CallExpression<'a> {
    /// Parses the text; `expected` completes the error "expected …".
    pub(super) fn read(text: Argument<'a>, expected: &str) -> Result<Self, ExpressionError> {
        let open = text.value.find('(').ok_or_else(|| text.expected(expected))?;
        let close = closing(text, open)?;
        let behind = text.part(close + 1, text.value.len());
        if !behind.value.is_empty() {
            return Err(behind.expected("nothing more"));
        }
        let left = split_arguments(text, open + 1, close).into_iter().map(split_key).collect();
        let end = text.part(close, close).column;
        Ok(Self { name: text.part(0, open).value, column: text.column, left, end })
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.left.iter().any(|(name, _)| *name == Some(key))
    }

    /// Takes the argument of this key.
    pub(super) fn key(&mut self, key: &str) -> Result<Argument<'a>, ExpressionError> {
        let index = self.left.iter().position(|(name, _)| *name == Some(key));
        index.map(|index| self.left.remove(index).1).ok_or_else(|| self.missing(&format!("{key}=…")))
    }

    /// Takes the first argument without a key; `what` names it in the error if it is missing.
    pub(super) fn next(&mut self, what: &str) -> Result<Argument<'a>, ExpressionError> {
        let index = self.left.iter().position(|(name, _)| name.is_none());
        index.map(|index| self.left.remove(index).1).ok_or_else(|| self.missing(what))
    }

    /// Takes the argument with this key, or else the first without a key.
    pub(super) fn either(&mut self, key: &str) -> Result<Argument<'a>, ExpressionError> {
        if self.has(key) { self.key(key) } else { self.next(&format!("{key}=…")) }
    }

    /// Takes all arguments without a key.
    pub(super) fn rest(&mut self) -> impl Iterator<Item = Argument<'a>> + use<'a> {
        let all = std::mem::take(&mut self.left).into_iter();
        let (without_key, with_key): (Vec<_>, Vec<_>) = all.partition(|(name, _)| name.is_none());
        self.left = with_key;
        without_key.into_iter().map(|(_, argument)| argument)
    }

    fn missing(&self, what: &str) -> ExpressionError {
        ExpressionError { column: self.end, message: format!("expected {what} in {}(…)", self.name) }
    }

    /// Fails unless every argument has been taken.
    pub(super) fn end(self) -> Result<(), ExpressionError> {
        match self.left.first() {
            None => Ok(()),
            Some((_, argument)) => Err(argument.expected(&format!("no such argument of {}(…)", self.name))),
        }
    }
}

/// The byte at which the bracket that opens at byte `open` closes.
fn closing(text: Argument<'_>, open: usize) -> Result<usize, ExpressionError> {
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

/// The texts between commas that are in no inner bracket.
fn split_arguments(text: Argument<'_>, from: usize, to: usize) -> Vec<Argument<'_>> {
    let mut arguments = Vec::new();
    let mut start = from;
    let mut depth = 0usize;
    for (offset, c) in text.value[from..to].char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                arguments.push(text.part(start, from + offset));
                start = from + offset + 1;
            }
            _ => {}
        }
    }
    let last = text.part(start, to);
    if !(arguments.is_empty() && last.value.is_empty()) {
        arguments.push(last);
    }
    arguments
}

/// The key of an argument, if it has one, and its value.
fn split_key(argument: Argument<'_>) -> (Option<&str>, Argument<'_>) {
    // A `=` behind the first bracket belongs to an inner call.
    let end = argument.value.find('(').unwrap_or(argument.value.len());
    match argument.value[..end].find('=') {
        None => (None, argument),
        Some(equals) => {
            let key = argument.part(0, equals).value;
            (Some(key), argument.part(equals + 1, argument.value.len()))
        }
    }
}
