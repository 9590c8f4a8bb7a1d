"""SQL92 filters: conditions over a message's properties, as in RocketMQ.

    amount > 5 AND region = 'eu' OR TAGS IN ('new', 'paid')

An expression is parsed once (`sql92_grammar`), its parts are checked (`sql92_terms`) and compiled
to one function (`sql92_code`). A message matches if that returns true. It does not match if the
result is false or unknown because a property is missing, or if a property that is compared with
a number is no number. Pure.

Source: SqlFilter, ExpressionMessageFilter.isMatchedByCommitLog of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from sprocket.filter.sql92_numbers import NotComparable
from sprocket.filter.sql92_terms import SqlInvalid

if TYPE_CHECKING:
    from sprocket.filter.sql92_code import Test, TextTest
    from sprocket.filter.sql92_terms import Term

__all__ = ["SQL92", "SqlFilter", "SqlInvalid"]

#: The expression type in subscriptions.
SQL92 = "SQL92"
#: The most characters of an expression.
TEXT_MAX = 16_384


class SqlFilter:
    """A compiled SQL92 expression.

    Attributes:
        kind: the subscription's expression type.
        expression: its text.
        tags, codes: empty; only filters by tag have them.
    """

    kind: ClassVar[str] = SQL92
    is_all: ClassVar[bool] = False
    tags: ClassVar[tuple[str, ...]] = ()
    codes: ClassVar[frozenset[int]] = frozenset()

    __slots__ = ("_by_name", "_by_text", "_term", "expression")

    def __init__(self, expression: str, term: Term) -> None:
        self.expression = expression
        self._term = term
        self._by_name: Test | None = None
        self._by_text: TextTest | None = None

    @staticmethod
    def parse(expression: str | None) -> SqlFilter:
        """Parses an expression; the filters of the last 256 are cached.

        Raises:
            SqlInvalid: it cannot be parsed; the error contains the column.
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

    def evaluate(self, get: Callable[[str], str | None]) -> bool | None:
        """The value of the condition, given a function from a property's name to its text or None:
        true, false, or None if it is unknown.

        Raises:
            NotComparable: a text that is no number is compared with one.
        """
        if self._by_name is None:
            from sprocket.filter.sql92_code import compiled

            self._by_name = compiled(self._term)
        return self._by_name(get)

    @property
    def matches_text(self) -> TextTest:
        """The same as `matches` for the text of properties in a record. It decodes only the
        properties in the condition."""
        if self._by_text is None:
            from sprocket.filter.sql92_code import compiled_for_text

            self._by_text = compiled_for_text(self._term)
        return self._by_text

    def __repr__(self) -> str:
        return f"SqlFilter({self.expression!r})"


@lru_cache(maxsize=256)
def _parse(expression: str) -> SqlFilter | tuple[str, int]:
    """The filter, or its fault and column. Faults are cached too, since clients repeat requests."""
    # Loading the parser takes some 50 ms, so only the first filter pays for it (decision 3).
    from sprocket.filter.sql92_grammar import read

    try:
        found = SqlFilter(expression, read(expression))
        found.matches_text(b"")
        return found
    except SqlInvalid as error:
        return error.fault, error.column
