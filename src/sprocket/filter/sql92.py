"""SQL92 filters: conditions over a message's properties, as RocketMQ has them.

    amount > 5 AND region = 'eu' OR TAGS IN ('new', 'paid')

An expression is read once (`sql92_grammar`), its parts are checked (`sql92_terms`) and become one
function (`sql92_code`). A message matches if that says true: not if it says false, or cannot tell
because a property is missing, or because one that is compared with a number is none. Pure.

Source: SqlFilter, ExpressionMessageFilter.isMatchedByCommitLog of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import ClassVar

from sprocket.filter.sql92_numbers import NotComparable
from sprocket.filter.sql92_terms import SqlInvalid
from sprocket.message.properties import value_in

__all__ = ["SQL92", "SqlFilter", "SqlInvalid"]

#: What a subscription's type says.
SQL92 = "SQL92"
#: An expression has at most so many characters.
TEXT_MAX = 16_384


class SqlFilter:
    """A compiled SQL92 expression.

    Attributes:
        kind: what a subscription's type says.
        expression: its text.
        tags, codes: none; those are for filters by tag.
        evaluate: what it says, given a function from a property's name to its text or None:
            true, false, or None if it cannot tell. Raises `NotComparable` where a text that is no
            number is compared with one.
    """

    kind: ClassVar[str] = SQL92
    is_all: ClassVar[bool] = False
    tags: ClassVar[tuple[str, ...]] = ()
    codes: ClassVar[frozenset[int]] = frozenset()

    __slots__ = ("evaluate", "expression")

    def __init__(
        self, expression: str, evaluate: Callable[[Callable[[str], str | None]], bool | None]
    ) -> None:
        self.expression = expression
        self.evaluate = evaluate

    @staticmethod
    def parse(expression: str | None) -> SqlFilter:
        """Reads an expression; the filters of the last few hundred are kept.

        Raises:
            SqlInvalid: it cannot be read; the error points at the column.
        """
        text = expression or ""
        if len(text) > TEXT_MAX:
            raise SqlInvalid(f"an expression has at most {TEXT_MAX} characters", TEXT_MAX + 1)
        found = _parse(text)
        if isinstance(found, SqlFilter):
            return found
        raise SqlInvalid(*found)

    def matches(self, properties: Mapping[str, str]) -> bool:
        """Whether a message with these properties matches."""
        try:
            return self.evaluate(properties.get) is True
        except NotComparable:
            return False

    def matches_text(self, properties: bytes) -> bool:
        """The same for properties as a record has them; only those it asks for are looked up."""
        try:
            return self.evaluate(partial(value_in, properties)) is True
        except NotComparable:
            return False

    def __repr__(self) -> str:
        return f"SqlFilter({self.expression!r})"


@lru_cache(maxsize=256)
def _parse(expression: str) -> SqlFilter | tuple[str, int]:
    """The filter, or what is wrong and where: kept too, for whoever asks again and again."""
    # Only whoever has a filter pays for loading the parser.
    from sprocket.filter.sql92_code import compiled
    from sprocket.filter.sql92_grammar import read

    try:
        return SqlFilter(expression, compiled(read(expression)))
    except SqlInvalid as error:
        return error.fault, error.column
