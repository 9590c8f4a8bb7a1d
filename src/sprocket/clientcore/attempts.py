"""Whether a failed request is sent again, and after which pause. Pure.

A broker that cannot be reached, or that refuses for now, has carried nothing out: it may be about
to be replaced by another master of its name. So a caller with a deadline repeats such attempts
until then. An attempt whose outcome is unknown may have been carried out, so it is repeated only a
few times.

Source: DefaultMQProducerImpl.sendDefaultImpl of RocketMQ 5.x, which has no pauses.
"""

from __future__ import annotations

from collections.abc import Iterator

from sprocket.base.errors import (
    ConnectFailed,
    NoPermission,
    NotLeaderForQueue,
    ServiceNotAvailable,
    SlaveNotAvailable,
    SprocketError,
    SystemBusy,
    SystemFailure,
)

#: Words with which access control refuses a client.
_SHUT_OUT_BY_4_X = ("AclException",)
_SHUT_OUT = (
    "permission to access", "check signature", "is not signed", "only super users", " is disabled",
    "authentication failed", *_SHUT_OUT_BY_4_X,
)  # fmt: skip
#: With this remark a broker refuses messages while too few copies of its log are in sync.
_TOO_FEW_COPIES = "in-sync replicas not enough"


def may_pass(error: SprocketError) -> bool:
    """Whether the same request may succeed later, at another broker, or with a new route."""
    return error.retriable or error.refresh_route


def is_refusal(error: SprocketError) -> bool:
    """Whether a broker certainly carried nothing out, and may soon be ready or be replaced.

    These are the replies of a slave, of a master that stops or may not accept messages, of a broker
    that does not lead a logical queue any more, and of one that is overloaded. A slave refuses ends
    of transactions with the code that means, for a send, that the message is stored; a send never
    raises that one. Source: `rejectRequest` and `handlePutMessageResult` of SendMessageProcessor,
    and EndTransactionProcessor, of RocketMQ 5.x.
    """
    if isinstance(error, SystemFailure):
        return _TOO_FEW_COPIES in error.remark
    return isinstance(
        error,
        ConnectFailed | SystemBusy | ServiceNotAvailable | SlaveNotAvailable | NotLeaderForQueue,
    )


def is_shut_out(error: SprocketError) -> bool:
    """Whether a broker's access control refuses the client: until somebody gives it the rights, or
    other keys, nothing helps.

    The same code is that of a topic or broker which may not be written or read now, so the words
    decide. Source: AuthorizationException and AuthenticationException of RocketMQ 5.3, AclException
    of 4.9, which comes with code 1, and our guard.
    """
    if not isinstance(error, NoPermission | SystemFailure):
        return False
    words = _SHUT_OUT if isinstance(error, NoPermission) else _SHUT_OUT_BY_4_X
    return any(each in error.remark for each in words)


class Attempts:
    """The failed attempts of one request.

    Args:
        retries: how many times the request may be sent again.
        pauses: seconds before each attempt at a broker that has failed already.
        has_deadline: whether the caller has one: then refusals do not count, unless `retries` is 0.

    Attributes:
        count: how many attempts failed, without the refusals that do not count.
        failed_at: the broker of the last failed attempt; empty if no broker was chosen yet.
    """

    __slots__ = ("_brokers", "_is_patient", "_pauses", "_retries", "count", "failed_at")

    def __init__(
        self, retries: int, pauses: Iterator[float], *, has_deadline: bool = False
    ) -> None:
        self._retries = retries
        self._is_patient = has_deadline and retries > 0
        self._pauses = pauses
        self._brokers: set[str] = set()
        self.count = 0
        self.failed_at = ""

    def another(self, error: SprocketError, broker: str = "") -> bool:
        """Counts a failed attempt, and returns whether to try again.

        Args:
            broker: the broker of the attempt; empty if none could be chosen.
        """
        self.failed_at = broker
        self._brokers.add(broker)
        if self._is_patient and is_refusal(error):
            return True
        self.count += 1
        return self.count <= self._retries and may_pass(error)

    def pause(self, broker: str = "") -> float:
        """Seconds to wait before the next attempt, which goes to this broker.

        A broker that has not failed is tried at once, because the failures of others do not concern
        it. One that has failed gets time to recover: without a pause all attempts would be used up
        within the milliseconds in which it refuses connections.
        """
        return next(self._pauses) if broker in self._brokers else 0.0
