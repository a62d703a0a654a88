"""Exceptions. The message is that of the command line; ``hint`` is its remedy."""

from __future__ import annotations

from typing import Optional, Tuple


class Error(Exception):
    """Base of all exceptions of this package.

    Attributes:
        message: What is wrong, and where.
        hint: What to do, where the message does not suggest it; otherwise ``None``.
    """

    def __init__(self, message: str, hint: Optional[str] = None) -> None:
        super().__init__(message if hint is None else f"{message} ({hint})")
        self.message = message
        self.hint = hint

    def __reduce__(self) -> Tuple[type, Tuple[str, Optional[str]]]:
        return type(self), (self.message, self.hint)


class InputError(Error, ValueError):
    """An argument or a file is wrong (exit code 2 of the command line)."""


class MachineError(Error, RuntimeError):
    """The machine lacks something that the call needs (exit code 3 of the command line)."""


class InternalError(Error, RuntimeError):
    """A bug of this package. Please report it with the message."""


class Caution(UserWarning):
    """The category of warnings: an answer may be other than expected."""
