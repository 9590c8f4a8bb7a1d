"""Every error a user can meet, in one tree. Those of another module have its name in parentheses.

    SprocketError
    ├── UsageError            the caller asked for something impossible
    │   ├── ConfigError       a setting is unknown, ill-typed or out of bounds
    │   ├── ClosedError       the object is closed, or not started yet
    │   ├── SchemaInvalid     a text is no schema that can be used (schemas.errors)
    │   ├── UnreadQueues      a change would hide messages (admin.topic_changes)
    │   └── QueueNotFound     the route of a topic has no such queue (client.sending.fixed_queue)
    ├── ProtocolError
    │   ├── LocalProtocolError    we were about to break the wire format
    │   └── RemoteProtocolError   the peer broke it
    │       ├── ConnectionFault   so that the connection ends (proxy.http2.faults)
    │       └── StreamFault       so that one stream ends (proxy.http2.faults)
    ├── TransportError        no server replied
    │   ├── ConnectFailed     no connection could be made
    │   ├── ConnectionLost    it broke before the reply arrived
    │   │   └── StreamEnded   the connection to a master (replication.master_link)
    │   └── CallTimeout       no reply in time
    ├── ReplyError            the server replied with an error (has `.code` and `.remark`)
    │   ├── one class per code worth catching: `TopicNotFound`, `NoPermission`, …
    │   │   ├── Forbidden     below NoPermission: reading is forbidden (broker.tables.access)
    │   │   ├── QuotaExceeded below SystemBusy: above a limit (quotas.refusals)
    │   │   ├── SqlInvalid    below SubscriptionInvalid and UsageError (filter.sql92_terms)
    │   │   └── Superseded    below SystemFailure: a broker is another's now (nameserver.routes)
    ├── BodyMismatch          a body does not fit its schema (schemas.errors)
    │   └── SchemaNotFound    a registry has no such schema (schemas.errors)
    ├── RegistryUnavailable   a schema registry does not answer (schemas.errors)
    ├── RouteNotFound         no broker is known for a topic
    ├── BrokersFailed         something is done at some brokers only (admin.caller)
    ├── ChildFailed           a process that was started did not begin to serve (container.children)
    ├── UserNotFound          no broker has a user of this name (admin.users)
    ├── EntryNotFound         a user's policies have no such entry (admin.acls)
    ├── ApiRefusal            the HTTP API refuses something (console.api.problems)
    ├── SessionEnded          a page's user has logged out (console.web.desk)
    ├── ReadOnlyConsole       a console that only reads (console.web.desk)
    ├── TooManyAttempts       too many failed log-ins (console.web.sessions)
    ├── UserUnknown           the brokers have no such user (proxy.brokers.accounts)
    ├── SendFailed            every attempt of a send failed (chained to the last)
    │   └── SomeNotSent       some of many messages (client.sending.many)
    ├── StoreError
    │   ├── CorruptRecord     bytes in the log are no record
    │   │   └── BodyTooLarge  a body opens to more than may be opened (message.compression)
    │   ├── OffsetOutOfRange  nothing is stored there
    │   ├── DiskFull          no free space to write
    │   ├── DamagedLog        the log is broken in a part that was on the disk
    │   ├── DirectoryInUse    another process has the store
    │   ├── CopyMismatch      a master's bytes do not continue this log (store.writing.replica_log)
    │   └── IllegalDraft      a message cannot be stored as it is (store.log.drafts)
    ├── ElectionRefused       a group changed, or its rules forbid it (election.elector)
    │   └── ControllerRefused RocketMQ's controller refuses it (election.controller_calls)
    ├── ElectorUnavailable    nobody says who leads a group (election.elector)
    ├── LeaseGone             a key is to be bound to a lease that ended (election.leased_keys)
    ├── LogsDiffer            a copy has what its master has not (replication.slave_forms)
    ├── GrpcError             ends a call with a status (proxy.http2.status)
    ├── ProcessLost           a filter's process ended (filterserver.process)
    ├── NotConfined           a filter's process cannot be shut in (filterserver.process)
    ├── CallRefused           a proxy refuses a call (proxy.messages.statuses)
    ├── ReadFailed            Spark: messages to read are gone (spark.options.loss)
    ├── BadBody               Spark: a body does not fit, and is to (spark.records.body_columns)
    ├── WriteFailed           Spark: messages could not be written (spark.writing.send)
    ├── TableConflict         another writer changed a table (spark.pipelines.tables.table)
    ├── StreamFailed          Spark: a streaming query failed (spark.pipelines.parts.streams)
    └── SparkFailed           the demo's Spark process failed (demo.tour)

`ListenerFailed` (client.delivery.processes) is a plain `Exception`: it carries a listener's own
error out of another process. So is `OpeningStopped` (message.opening), which ends a scan.

`retriable` is true if the same call may succeed elsewhere or later; `refresh_route` if the cached
route should be fetched again first. Retry loops read these two and contain no lists of codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


class SprocketError(Exception):
    """Base class of all our errors."""

    retriable: ClassVar[bool] = False
    refresh_route: ClassVar[bool] = False


class UsageError(SprocketError):
    """The caller asked for something impossible."""


class ConfigError(UsageError):
    """A setting is unknown, ill-typed or out of bounds. The text contains its key and its place.

    If several settings are wrong, the text has a line for each.
    """


class ClosedError(UsageError):
    """The object is closed, or not started yet."""


class ProtocolError(SprocketError):
    """A frame violates the wire format."""


class LocalProtocolError(ProtocolError):
    """We were about to send something that the wire format cannot carry."""


class RemoteProtocolError(ProtocolError):
    """The peer sent something that is no RocketMQ frame, or whose fields are not as declared."""


class TransportError(SprocketError):
    """No server replied."""

    retriable = True
    refresh_route = True


class ConnectFailed(TransportError):
    """No connection could be made."""


class ConnectionLost(TransportError):
    """The connection broke before the reply arrived; the request may have been carried out."""


class CallTimeout(TransportError):
    """No reply arrived in time; the request may have been carried out."""


class RouteNotFound(SprocketError):
    """No broker is known for the topic."""

    refresh_route = True


class SendFailed(SprocketError):
    """Every attempt to send failed; `__cause__` is the last failure."""


class StoreError(SprocketError):
    """The store could not carry out an operation."""


class CorruptRecord(StoreError):
    """The bytes at a place in the log are no record."""


class OffsetOutOfRange(StoreError):
    """Nothing is stored at that offset."""


class DiskFull(StoreError):
    """There is no free space to write; reads still work."""


class DamagedLog(StoreError):
    """The log is broken in a part that had been synced, and messages are stored behind it."""


class DirectoryInUse(StoreError):
    """Another process owns the directory."""


class ReplyError(SprocketError):
    """A server replied with a code other than success.

    Attributes:
        code: RocketMQ's response code.
        remark: the server's error text.
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
    """Code 1: the server failed, and no more precise code exists."""

    code = 1
    retriable = True


class SystemBusy(ReplyError):
    """Code 2: the server is overloaded for now."""

    code = 2
    retriable = True


class RequestNotSupported(ReplyError):
    """Code 3: the server does not know the request code."""

    code = 3


class FlushDiskTimeout(ReplyError):
    """Code 10: the message is stored, but was not synced to the disk in time."""

    code = 10


class SlaveNotAvailable(ReplyError):
    """Code 11: the message is stored, but no slave is available to copy it."""

    code = 11


class FlushSlaveTimeout(ReplyError):
    """Code 12: the message is stored, but no slave copied it in time."""

    code = 12


class IllegalMessage(ReplyError):
    """Code 13: the message is too large or malformed."""

    code = 13


class ServiceNotAvailable(ReplyError):
    """Code 14: the broker does not accept writes now (disk full, shutting down)."""

    code = 14
    retriable = True


class VersionNotSupported(ReplyError):
    """Code 15: the server does not support the client's version."""

    code = 15


class NoPermission(ReplyError):
    """Code 16: the topic, group or broker forbids it.

    Attributes:
        user: who asked, if the signature was found right; for the server's audit log.
    """

    code = 16
    user = ""


class TopicNotFound(ReplyError):
    """Code 17: the server does not know the topic."""

    code = 17
    retriable = True
    refresh_route = True


class QueryNotFound(ReplyError):
    """Code 22: nothing of that kind is stored."""

    code = 22


class NotLeaderForQueue(ReplyError):
    """Code 501: another broker leads this logical queue of a static topic."""

    code = 501
    retriable = True
    refresh_route = True


class SubscriptionInvalid(ReplyError):
    """Code 23: the filter expression cannot be parsed."""

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
    """Code 27: the broker does not have the requested filter in Python."""

    code = 27


class FilterFailed(ReplyError):
    """Code 30001, Sprocket's own: a filter in Python failed, so no messages could be chosen."""

    code = 30001


class InvalidParameter(ReplyError):
    """Code 29: a field of the request is missing or out of bounds."""

    code = 29


class HandleExpired(ReplyError):
    """Code 208: the handle of a popped message does not count any more.

    The message became visible again before it was acknowledged, or the group was reset: it comes
    again, or somebody else has it.

    Attributes:
        messages: those that it is about, of several that were acknowledged together.
    """

    code = 208

    def __init__(
        self, remark: str = "", code: int | None = None, messages: Sequence[object] = ()
    ) -> None:
        super().__init__(remark, code)
        self.messages = tuple(messages)


class ConsumerOffline(ReplyError):
    """Code 206: the consumer group has no member online."""

    code = 206


_BY_CODE: dict[int, type[ReplyError]] = {kind.code: kind for kind in ReplyError.__subclasses__()}
