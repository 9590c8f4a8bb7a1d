"""Filters of subscriptions: by tag code at the queue entry, by SQL92 at the record. Pure.

An expression that cannot be parsed is refused with code 23 and a remark that names the position of
the mistake, in a pull as well as in the check (46) that clients make before. Java, in contrast,
gives all messages to a pull whose SQL92 it cannot parse.

Source: FilterAPI, ExpressionMessageFilter, PullMessageProcessor of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Sequence

from sprocket.base.errors import SubscriptionInvalid, SystemFailure
from sprocket.broker.config import BrokerConfig
from sprocket.filter.python import PYTHON
from sprocket.filter.sql92 import SQL92, SqlFilter
from sprocket.filter.tags import TagFilter
from sprocket.protocol.requests.pull import CANNOT_FILTER
from sprocket.store.reading.queue_reader import ReadFilter

_TAG = "TAG"
#: Longest expression, in characters: parsed expressions are cached.
_EXPRESSION_MAX = 65_536


def is_code(kind: str | None) -> bool:
    """Whether a subscription's type is a filter in Python, which `code_filters` keeps."""
    return kind == PYTHON


def wants_of(
    kind: str | None, text: str | None, config: BrokerConfig, *, codes: Sequence[int] = ()
) -> ReadFilter | None:
    """The filter of a subscription; None if it wants all messages.

    Args:
        kind: its expression's type; None means `TAG`.
        text: its expression.
        codes: the tag codes that its client computed, if it did.

    Raises:
        SubscriptionInvalid: the expression cannot be parsed.
        SystemFailure: the type is unknown or switched off.
    """
    if (kind or _TAG) != _TAG:
        return ReadFilter(by_properties=_sql(kind, text, config).matches_text)
    if codes and text and text != "*":
        return ReadFilter(frozenset(codes).__contains__)
    if len(text or "") > _EXPRESSION_MAX:
        raise SubscriptionInvalid(f"an expression has at most {_EXPRESSION_MAX} characters")
    try:
        chosen = TagFilter.parse(text)
    except SubscriptionInvalid:
        raise SubscriptionInvalid("parse the consumer's subscription failed") from None
    return None if chosen.is_all else ReadFilter(chosen.codes.__contains__)


def check(kind: str | None, text: str | None, config: BrokerConfig) -> None:
    """Refuses an expression that a pull could not use; as in Java, tags are not checked.

    Raises:
        SubscriptionInvalid, SystemFailure: as `wants_of`.
    """
    if (kind or _TAG) != _TAG:
        _sql(kind, text, config)


def _sql(kind: str | None, text: str | None, config: BrokerConfig) -> SqlFilter:
    refusal = f"{CANNOT_FILTER} {kind}"
    if kind != SQL92:
        raise SystemFailure(refusal)
    if not config.sql_filters:
        raise SystemFailure(f"{refusal}: its setting enablePropertyFilter (sql_filters) is false")
    return SqlFilter.parse(text)
