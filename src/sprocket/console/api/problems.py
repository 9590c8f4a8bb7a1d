"""Errors as answers of the API: RFC 9457's problem details, with the setting to change. Pure."""

from __future__ import annotations

import msgspec

from sprocket.admin.acls import EntryNotFound
from sprocket.admin.caller import BrokersFailed
from sprocket.admin.topic_changes import UnreadQueues
from sprocket.admin.users import UserNotFound
from sprocket.base.errors import (
    CallTimeout,
    ConsumerOffline,
    FilterMissing,
    GroupNotFound,
    InvalidParameter,
    NoPermission,
    QueryNotFound,
    ReplyError,
    RequestNotSupported,
    RouteNotFound,
    SprocketError,
    SystemBusy,
    TopicNotFound,
    TransportError,
    UsageError,
)

#: The media type of problems.
CONTENT_TYPE = "application/problem+json"
#: Characters of a text from elsewhere.
_DETAIL_MAX = 2_000


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why something was not done."""

    title: str
    status: int
    detail: str
    #: What to change so that it is done.
    setting: str | None = None
    #: Where it was done nevertheless, and what failed at which broker.
    done: list[str] = []
    failed: dict[str, str] = {}


class ApiRefusal(SprocketError):
    """The API itself refuses something.

    Attributes:
        status: of HTTP.
        setting: what to change so that it is done; None if nothing would help.
    """

    def __init__(self, status: int, detail: str, *, setting: str | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.setting = setting


_TITLES = {
    400: "The parameters are not valid",
    401: "Nobody is known by what the request brings",
    403: "It is not allowed",
    404: "There is no such thing",
    405: "There is no such method",
    408: "The request did not come in time",
    409: "It would do harm",
    413: "The request is too large",
    415: "A body is JSON",
    421: "The request is for another host",
    422: "It cannot be done as it is asked for",
    500: "The API failed",
    501: "The brokers do not support it",
    502: "A broker failed or refused",
    503: "There is too much to do",
    504: "It took too long",
}
#: The first class of which an error is one decides.
_STATUS: tuple[tuple[type[SprocketError] | tuple[type[SprocketError], ...], int], ...] = (
    (UnreadQueues, 409),
    ((UsageError, InvalidParameter), 422),
    (NoPermission, 403),
    (
        (
            TopicNotFound, GroupNotFound, QueryNotFound, UserNotFound, EntryNotFound,
            FilterMissing, ConsumerOffline, RouteNotFound,
        ),
        404,
    ),
    (RequestNotSupported, 501),
    (SystemBusy, 503),
    (CallTimeout, 504),
    ((TransportError, ReplyError, BrokersFailed), 502),
)  # fmt: skip


def problem_of(error: SprocketError) -> Problem:
    """The problem that an error is."""
    if isinstance(error, ApiRefusal):
        return refused(error.status, str(error), setting=error.setting)
    status = next((status for kinds, status in _STATUS if isinstance(error, kinds)), 500)
    setting = None
    if isinstance(error, UnreadQueues):
        setting = "may_hide"
    elif isinstance(error, NoPermission):
        setting = "the user's policies (policies.grant), or the keys that sign the request"
    problem = refused(status, str(error), setting=setting)
    if isinstance(error, BrokersFailed):
        failed = {name: str(each)[:_DETAIL_MAX] for name, each in error.failures.items()}
        return msgspec.structs.replace(problem, done=error.done, failed=failed)
    return problem


def refused(status: int, detail: str, *, setting: str | None = None) -> Problem:
    """The problem of a status."""
    title = _TITLES.get(status, "It was not done")
    return Problem(title=title, status=status, detail=detail[:_DETAIL_MAX], setting=setting)
