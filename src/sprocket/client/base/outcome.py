"""How something ended: a transaction, or what an ordered consumer commits by hand."""

from __future__ import annotations

from enum import Enum

from sprocket.protocol.requests.transaction import COMMIT, ROLLBACK, UNKNOWN


class Outcome(Enum):
    """How it ended, or that it is not known yet."""

    COMMIT = COMMIT
    ROLLBACK = ROLLBACK
    UNKNOWN = UNKNOWN
