"""A configuration at a broker before and after a change, be it a trial."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

C = TypeVar("C")


class ConfigChange(NamedTuple, Generic[C]):
    """A topic's or group's settings at a broker before and after a change.

    Attributes:
        before: None if it was not there.
    """

    broker: str
    before: C | None
    after: C

    @property
    def done(self) -> str:
        """What is done by it, in a word."""
        if self.before is None:
            return "created"
        return "unchanged" if self.after == self.before else "changed"
