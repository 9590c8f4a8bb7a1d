"""Tag expressions: `*`, or words joined by `||`.

A broker compares the hash in the consume queue entry. A consumer compares the tags themselves,
since two tags may have the same hash. Pure. Source: FilterAPI.buildSubscriptionData of RocketMQ
4.9 and 5.x.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import ClassVar

from sprocket.base.errors import SubscriptionInvalid
from sprocket.message.hashing import java_hash
from sprocket.message.properties import TAGS

ALL = "*"
_OR = "||"


class TagFilter:
    """A parsed tag expression.

    Attributes:
        kind: the subscription's expression type.
        expression: the subscription's text.
        is_all: whether every message matches.
        tags: the words, in the order given; empty if `is_all`.
        codes: their hashes; a consume queue entry matches if it has one of them.
    """

    kind: ClassVar[str] = "TAG"

    __slots__ = ("codes", "expression", "is_all", "tags")

    def __init__(self, expression: str, tags: tuple[str, ...], *, is_all: bool) -> None:
        self.expression = expression
        self.is_all = is_all
        self.tags = tags
        self.codes = frozenset(java_hash(tag) for tag in tags)

    @staticmethod
    def parse(expression: str | None) -> TagFilter:
        """Parses an expression; None, an empty text and `*` match everything.

        Raises:
            SubscriptionInvalid: it contains only separators.
        """
        return _parse(expression or ALL)

    def matches(self, properties: Mapping[str, str]) -> bool:
        """Whether a message with these properties matches."""
        return self.is_all or properties.get(TAGS) in self.tags

    def __repr__(self) -> str:
        return f"TagFilter({self.expression!r})"


@lru_cache(maxsize=1024)
def _parse(expression: str) -> TagFilter:
    if expression == ALL:
        return TagFilter(ALL, (), is_all=True)
    pieces = expression.split(_OR)
    if not any(pieces):
        raise SubscriptionInvalid(f"subString split error: {expression!r} names no tag")
    tags = tuple(dict.fromkeys(tag for piece in pieces if (tag := piece.strip())))
    return TagFilter(expression, tags, is_all=False)
