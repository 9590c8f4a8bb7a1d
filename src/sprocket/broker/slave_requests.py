"""What a slave refuses: whatever would write a message, or change what is the master's to change.

Consumers may read from it, if that is switched on, and commit offsets, as at a slave of RocketMQ.
Source: the `rejectRequest` of SendMessageProcessor and PullMessageProcessor,
EndTransactionProcessor, RecallMessageProcessor and AdminBrokerProcessor of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Callable

from sprocket.base.errors import ReplyError, SlaveNotAvailable, SystemBusy, SystemFailure
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.settings import BrokerSettings
from sprocket.protocol.codes import OwnRequestCode, RequestCode
from sprocket.protocol.command import Command
from sprocket.remoting.endpoints import Endpoint, EventualResponse
from sprocket.remoting.transport import Peer

_BUSY = "[REJECTREQUEST]system busy, start flow control for a while: "
_SENDS = (
    RequestCode.SEND_MESSAGE,
    RequestCode.SEND_MESSAGE_V2,
    RequestCode.SEND_BATCH_MESSAGE,
    RequestCode.CONSUMER_SEND_MSG_BACK,
    RequestCode.SEND_REPLY_MESSAGE,
    RequestCode.SEND_REPLY_MESSAGE_V2,
    OwnRequestCode.STAGE_BATCH,
    OwnRequestCode.PUBLISH_STAGED,
)
_POPS = (
    RequestCode.POP_MESSAGE,
    RequestCode.ACK_MESSAGE,
    RequestCode.BATCH_ACK_MESSAGE,
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
    RequestCode.POP_LITE_MESSAGE,
    RequestCode.LITE_SUBSCRIPTION_CTL,
)
_PULLS = (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE)
_ENDS = (RequestCode.END_TRANSACTION, RequestCode.RESUME_CHECK_HALF_MESSAGE)
_RESETS = (RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, RequestCode.RESET_CONSUMER_OFFSET_IN_BROKER)
_CHANGES = (
    RequestCode.UPDATE_AND_CREATE_TOPIC,
    RequestCode.UPDATE_AND_CREATE_TOPIC_LIST,
    RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC,
    RequestCode.DELETE_TOPIC_IN_BROKER,
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
    RequestCode.DELETE_SUBSCRIPTIONGROUP,
    RequestCode.CLEAN_UNUSED_TOPIC,
    RequestCode.SET_MESSAGE_REQUEST_MODE,
)


def at_slave(
    endpoints: Endpoints, settings: BrokerSettings, *, is_acting: Callable[[], bool]
) -> Endpoints:
    """The endpoints of a slave: those of a broker, but for what it refuses.

    Args:
        is_acting: whether it stands for its master now; then it may be read.
    """
    name = settings.config.name

    def busy(why: str) -> ReplyError:
        return SystemBusy(f"{_BUSY}broker {name} is a slave {why}")

    refusing: dict[tuple[int, ...], Callable[[], ReplyError]] = {
        _SENDS: lambda: busy("and takes no messages"),
        _POPS: lambda: busy("and gives out no messages one by one"),
        _ENDS: lambda: SlaveNotAvailable("a slave ends no transactions"),
        (RequestCode.RECALL_MESSAGE,): lambda: SlaveNotAvailable(
            "recall failed, broker service not available"
        ),
        _RESETS: lambda: SystemFailure("Can not reset offset in slave broker"),
        (OwnRequestCode.STATE_CHANGES,): lambda: SlaveNotAvailable(
            f"broker {name} is a slave, and its state is its master's"
        ),
        _CHANGES: lambda: SystemFailure(
            "Can't modify topic or subscription group from slave broker, please execute it from "
            "master broker."
        ),
    }
    table = dict(endpoints)
    for codes, why in refusing.items():
        table |= {code: _refusing(why) for code in codes if code in endpoints}
    for code in _PULLS:
        table[code] = _if_reading(
            endpoints[code],
            lambda: settings.config.slave_reads or is_acting(),
            lambda: busy("and may not be read"),
        )
    return table


def _refusing(why: Callable[[], ReplyError]) -> Endpoint:
    def refuse(command: Command, peer: Peer) -> EventualResponse:
        raise why()

    return refuse


def _if_reading(
    endpoint: Endpoint, may_read: Callable[[], bool], why: Callable[[], ReplyError]
) -> Endpoint:
    """The endpoint, while consumers may read."""

    def pull(command: Command, peer: Peer) -> EventualResponse:
        if not may_read():
            raise why()
        return endpoint(command, peer)

    return pull
