"""The one logger of the running system: ids in `extra`, never a text, silent unless the host listens."""

from __future__ import annotations

import logging

__all__ = ["log"]

log = logging.getLogger("turnkeeper")
log.addHandler(logging.NullHandler())
