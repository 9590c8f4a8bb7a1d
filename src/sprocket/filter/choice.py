"""The ways to choose messages: tags, SQL92 over properties, or a function. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

from sprocket.base.errors import UsageError
from sprocket.filter.python import PythonFilter
from sprocket.filter.sql92 import SqlFilter
from sprocket.filter.tags import ALL, TagFilter

Filter = TagFilter | SqlFilter | PythonFilter


class MessageSelector(TypedDict, total=False):
    """How messages are chosen: by one of these, or by none for all messages.

    Attributes:
        tags: `*` for all messages, or tags with `||` between them.
        sql: a condition over properties: `"amount > 5 AND region = 'eu'"`.
        code: a function that returns for each message whether it is wanted, or a `PythonFilter`.
            It runs at the broker, which must be set up for it.
    """

    tags: str
    sql: str | None
    code: PythonFilter | Callable[[Any], bool] | None


def filter_of(
    tags: str = ALL,
    sql: str | None = None,
    code: PythonFilter | Callable[[Any], bool] | None = None,
) -> Filter:
    """The filter for a user's choice; see `MessageSelector`.

    Raises:
        SubscriptionInvalid: it cannot be parsed; for SQL92 the text contains the column.
        UsageError: several are given, or the function's source is not available.
    """
    if (tags != ALL) + (sql is not None) + (code is not None) > 1:
        raise UsageError(
            "messages are chosen by tags, by sql or by code, one of them; in sql the tag is TAGS"
        )
    if not isinstance(tags, str) or not isinstance(sql, str | None):
        raise UsageError("tags and sql are texts: 'paid || new', 'amount > 5'")
    if code is not None:
        return code if isinstance(code, PythonFilter) else PythonFilter(code)
    return TagFilter.parse(tags) if sql is None else SqlFilter.parse(sql)
