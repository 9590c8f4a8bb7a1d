"""Every error a user can meet, in one tree.

    SprocketError
    ├── UsageError            you asked for something that cannot be
    │   ├── ConfigError       a setting is unknown, ill-typed or out of bounds
    │   └── ClosedError       the object was closed, or not started yet
    ├── ProtocolError
    │   ├── LocalProtocolError    we were about to break the wire format
    │   └── RemoteProtocolError   the peer broke it
    ├── TransportError        nobody answered
    │   ├── ConnectFailed     no connection could be made
    │   ├── ConnectionLost    it broke while a reply was awaited
    │   └── CallTimeout       no reply in time
    ├── ReplyError            the server answered, and said no (has `.code` and `.remark`)
    │   └── one class per answer worth catching: `TopicNotFound`, `NoPermission`, …
    ├── RouteNotFound         no broker is known for a topic
    ├── SendFailed            every attempt of a send failed (chained to the last)
    └── StoreError
        ├── CorruptRecord     bytes in the log are no record
        ├── OffsetOutOfRange  nothing is stored there
        ├── DiskFull          no room to write
        ├── DamagedLog        the log is broken where it had been whole
        └── DirectoryInUse    another process has the store

`retriable` says whether the same call may succeed elsewhere or later; `refresh_route` whether
the cached route should be fetched again first. Retry loops ask these and hold no lists of codes.
"""

from __future__ import annotations

from typing import ClassVar


class SprocketError(Exception):
    """Root of all our errors."""

    retriable: ClassVar[bool] = False
    refresh_route: ClassVar[bool] = False


class UsageError(SprocketError):
    """The caller asked for something that cannot be."""


class ConfigError(UsageError):
    """A setting is unknown, ill-typed or out of bounds. The text names the key and where it is."""


class ClosedError(UsageError):
    """The object was closed, or has not been started."""


class ProtocolError(SprocketError):
    """The wire format was broken."""


class LocalProtocolError(ProtocolError):
    """We were about to send something that the wire format cannot carry."""


class RemoteProtocolError(ProtocolError):
    """The peer sent something that is no RocketMQ frame, or breaks its own declaration."""


class TransportError(SprocketError):
    """Nobody answered."""

    retriable = True
    refresh_route = True


class ConnectFailed(TransportError):
    """No connection could be made."""


class ConnectionLost(TransportError):
    """The connection broke while a reply was awaited; the request may have been carried out."""


class CallTimeout(TransportError):
    """No reply came in time; the request may have been carried out."""


class RouteNotFound(SprocketError):
    """No broker is known for the topic."""

    refresh_route = True


class SendFailed(SprocketError):
    """Every attempt to send failed; `__cause__` is the last failure."""


class StoreError(SprocketError):
    """The store could not do it."""


class CorruptRecord(StoreError):
    """The bytes at a place in the log are no record."""


class OffsetOutOfRange(StoreError):
    """Nothing is stored at that offset."""


class DiskFull(StoreError):
    """There is no room to write; reads go on."""


class DamagedLog(StoreError):
    """The log is broken at a place that had been on the disk, and messages lie behind it."""


class DirectoryInUse(StoreError):
    """Another process owns the directory."""


class ReplyError(SprocketError):
    """A server answered with something else than success.

    Attributes:
        code: RocketMQ's response code.
        remark: the server's own words.
    """

    code: int = 1

    def __init__(self, remark: str = "", code: int | None = None) -> None:
        super().__init__(remark)
        self.remark = remark
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        return f"{self.remark or type(self).__name__} (code {self.code})"

    @classmethod
    def of(cls, code: int, remark: str) -> ReplyError:
        """The error for a response code: its own class if there is one, else `ReplyError`."""
        return _BY_CODE.get(code, ReplyError)(remark, code)


class SystemFailure(ReplyError):
    """Code 1: the server could not do it and has no better word for why."""

    code = 1
    retriable = True


class SystemBusy(ReplyError):
    """Code 2: the server refuses load for now."""

    code = 2
    retriable = True


class RequestNotSupported(ReplyError):
    """Code 3: the server does not know the request code."""

    code = 3


class FlushDiskTimeout(ReplyError):
    """Code 10: stored, but not known to be on the disk in time."""

    code = 10


class SlaveNotAvailable(ReplyError):
    """Code 11: stored, but no slave is there to copy it."""

    code = 11


class FlushSlaveTimeout(ReplyError):
    """Code 12: stored, but not copied by a slave in time."""

    code = 12


class IllegalMessage(ReplyError):
    """Code 13: the message is too large or malformed."""

    code = 13


class ServiceNotAvailable(ReplyError):
    """Code 14: the broker does not take writes now (disk full, shutting down)."""

    code = 14
    retriable = True


class VersionNotSupported(ReplyError):
    """Code 15."""

    code = 15


class NoPermission(ReplyError):
    """Code 16: the topic, group or broker forbids it."""

    code = 16


class TopicNotFound(ReplyError):
    """Code 17: the server does not know the topic."""

    code = 17
    retriable = True
    refresh_route = True


class QueryNotFound(ReplyError):
    """Code 22: nothing of that kind is stored."""

    code = 22


class SubscriptionInvalid(ReplyError):
    """Code 23: the filter expression cannot be read."""

    code = 23


class SubscriptionMissing(ReplyError):
    """Code 24: the broker has no subscription of this group for this topic."""

    code = 24


class SubscriptionOutdated(ReplyError):
    """Code 25: the broker's subscription is older than the request's."""

    code = 25


class GroupNotFound(ReplyError):
    """Code 26: the broker does not know the consumer group."""

    code = 26


class FilterMissing(ReplyError):
    """Code 27: the broker does not have the filter in Python that is asked for."""

    code = 27


class FilterFailed(ReplyError):
    """Code 30001, ours: a filter in Python does not say which messages are wanted."""

    code = 30001


class InvalidParameter(ReplyError):
    """Code 29: a field of the request is missing or out of bounds."""

    code = 29


class ConsumerOffline(ReplyError):
    """Code 206: the consumer group has no member online."""

    code = 206


_BY_CODE: dict[int, type[ReplyError]] = {kind.code: kind for kind in ReplyError.__subclasses__()}
