use std::fmt;

/// Whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The request: a wrong path, size or flag.
    Input,
    /// The machine: permissions, space, a file system without direct I/O, a failing device.
    Environment,
}

/// Why there is no measurement, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasureError {
    fault: Fault,
    message: String,
    hint: Option<String>,
}

impl MeasureError {
    pub(crate) fn input(message: impl fmt::Display) -> Self {
        Self { fault: Fault::Input, message: message.to_string(), hint: None }
    }

    pub(crate) fn environment(message: impl fmt::Display) -> Self {
        Self { fault: Fault::Environment, message: message.to_string(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// Whose turn it is.
    pub fn fault(&self) -> Fault {
        self.fault
    }

    /// What to do about it.
    pub fn remedy(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for MeasureError {}
