"""What a consumer may choose messages by: tags, or SQL92 over properties. Pure."""

from __future__ import annotations

from sprocket.base.errors import UsageError
from sprocket.filter.sql92 import SqlFilter
from sprocket.filter.tags import ALL, TagFilter

Filter = TagFilter | SqlFilter


def filter_of(tags: str, sql: str | None = None) -> Filter:
    """The filter that a user asks for by one of them.

    Args:
        tags: `*` for all messages, or tags with `||` between them.
        sql: a condition, see `sprocket.filter.sql92`; None for tags.

    Raises:
        SubscriptionInvalid: it cannot be read; for SQL92 the text says at which column.
        UsageError: both are given.
    """
    if sql is None:
        return TagFilter.parse(tags)
    if tags != ALL:
        raise UsageError("messages are chosen by tags or by sql, not both; in sql the tag is TAGS")
    return SqlFilter.parse(sql)
