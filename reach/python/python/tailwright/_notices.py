"""Notices of a call: warnings go to ``warnings``, everything else to the logger ``tailwright``."""

from __future__ import annotations

import logging
import os
import sys
import warnings

from ._errors import Caution

_LOGGER = logging.getLogger("tailwright")
_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def warn(text: str) -> None:
    """Warns at the line of the caller outside this package."""
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == _PACKAGE:
        frame = frame.f_back
        level += 1
    warnings.warn(text, Caution, stacklevel=level + 1)


def inform(text: str) -> None:
    """Logs a note about how a question was read, or what was done."""
    _LOGGER.info("%s", text)
