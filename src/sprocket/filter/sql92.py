"""SQL92 filters: conditions over a message's properties, as RocketMQ has them.

    amount > 5 AND region = 'eu' OR TAGS IN ('new', 'paid')

An expression is read once (`sql92_grammar`), its parts are checked (`sql92_terms`) and become one
function (`sql92_code`). A message matches if that says true: not if it says false, or cannot tell
because a property is missing, or because one that is compared with a number is none. Pure.

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

    def evaluate(self, get: Callable[[str], str | None]) -> bool | None:
        """What it says, given a function from a property's name to its text or None: true, false,
        or None if it cannot tell.

        Raises:
            NotComparable: a text that is no number is compared with one.
        """
        if self._by_name is None:
            from sprocket.filter.sql92_code import compiled

            self._by_name = compiled(self._term)
        return self._by_name(get)

    @property
    def matches_text(self) -> TextTest:
        """The same as `matches` for properties as a record has them; only those that it asks for
        are looked up."""
        if self._by_text is None:
            from sprocket.filter.sql92_code import compiled_for_text

            self._by_text = compiled_for_text(self._term)
        return self._by_text

    def __repr__(self) -> str:
        return f"SqlFilter({self.expression!r})"


@lru_cache(maxsize=256)
def _parse(expression: str) -> SqlFilter | tuple[str, int]:
    """The filter, or what is wrong and where: kept too, for whoever asks again and again."""
    # Only whoever has a filter pays for loading the parser.
    from sprocket.filter.sql92_grammar import read

    try:
        found = SqlFilter(expression, read(expression))
        found.matches_text(b"")
        return found
    except SqlInvalid as error:
        return error.fault, error.column
