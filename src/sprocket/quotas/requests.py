"""What a request counts as, and whose topic and group it is about. Pure."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from sprocket.base.errors import SprocketError
from sprocket.protocol.codes import OwnRequestCode
from sprocket.protocol.codes import RequestCode as Code
from sprocket.protocol.command import Command
from sprocket.protocol.requests.lite import PopLite
from sprocket.protocol.requests.pop import Notification, PeekMessage, PopMessage
from sprocket.protocol.requests.pull import SUSPEND, LitePullMessage, PullMessage
from sprocket.protocol.requests.send import SendBatch, SendMessage, SendMessageV2
from sprocket.protocol.requests.staged import StageBatch

#: Requests that bring messages in; above a limit they are refused.
SENDS: dict[int, type[SendMessage | SendMessageV2 | StageBatch]] = {
    Code.SEND_MESSAGE: SendMessage,
    Code.SEND_MESSAGE_V2: SendMessageV2,
    Code.SEND_BATCH_MESSAGE: SendBatch,
    OwnRequestCode.STAGE_BATCH: StageBatch,
}
#: Requests that take messages out; above a limit they wait.
READS: dict[int, type[PullMessage | PopMessage | PopLite | PeekMessage | Notification]] = {
    Code.PULL_MESSAGE: PullMessage,
    Code.LITE_PULL_MESSAGE: LitePullMessage,
    Code.POP_MESSAGE: PopMessage,
    Code.POP_LITE_MESSAGE: PopLite,
    Code.PEEK_MESSAGE: PeekMessage,
    Code.NOTIFICATION: Notification,
}
#: Requests without which a client loses its place, consumes again what it has consumed, or a slave
#: falls behind. They count as all do, but have a second burst, which others cannot use up.
VITAL = frozenset(
    {
        Code.HEART_BEAT, Code.UNREGISTER_CLIENT, Code.GET_CONSUMER_LIST_BY_GROUP,
        Code.UPDATE_CONSUMER_OFFSET, Code.QUERY_CONSUMER_OFFSET, Code.CONSUMER_SEND_MSG_BACK,
        Code.END_TRANSACTION, Code.LOCK_BATCH_MQ, Code.UNLOCK_BATCH_MQ, Code.ACK_MESSAGE,
        Code.BATCH_ACK_MESSAGE, Code.ACK_LITE_MESSAGE, Code.LITE_SUBSCRIPTION_CTL,
        Code.CHANGE_MESSAGE_INVISIBLETIME, Code.GET_ALL_TOPIC_CONFIG,
        Code.GET_ALL_CONSUMER_OFFSET, Code.GET_ALL_DELAY_OFFSET,
        Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, Code.GET_ALL_MESSAGE_REQUEST_MODE,
        Code.GET_TIMER_CHECK_POINT, Code.GET_TIMER_METRICS, Code.EXCHANGE_BROKER_HA_INFO,
        Code.BROKER_HEARTBEAT, Code.REGISTER_BROKER, Code.UNREGISTER_BROKER,
        *OwnRequestCode,
    }
    - SENDS.keys()
)  # fmt: skip
#: Requests by which an operator sees and changes limits.
FREE = frozenset(
    {
        Code.UPDATE_BROKER_CONFIG, Code.GET_BROKER_CONFIG, Code.GET_BROKER_RUNTIME_INFO,
        Code.UPDATE_NAMESRV_CONFIG, Code.GET_NAMESRV_CONFIG,
    }
)  # fmt: skip
#: A read that does not say how long it may wait is delayed for so long at most, ms.
_UNSAID_MS = 1_000
_LONGEST_MS = 30_000


class Subject(NamedTuple):
    """What a request is about; empty texts where it is about none."""

    topic: str
    group: str


NOTHING = Subject("", "")


def subject(command: Command) -> Subject:
    """The topic of a send or read, and the consumer group of a read.

    A request that cannot be read is about nothing: whoever answers it says what is wrong.
    """
    # What was read is kept, so that it is not read twice.
    try:
        if (sending := SENDS.get(command.code)) is not None:
            command.header = sent = command.read(sending)
            return Subject(sent.topic, "")
        if (reading := READS.get(command.code)) is not None:
            command.header = read = command.read(reading)
            return Subject(read.topic, read.consumer_group)
    except SprocketError:
        pass
    return NOTHING


def patience_ms(command: Command) -> int:
    """How long the sender of a read waits for its reply at least, ms."""
    try:
        header = command.read(READS[command.code])
    except SprocketError:
        return 0
    if isinstance(header, PullMessage):
        asked = header.suspend_timeout_millis if header.sys_flag & SUSPEND else 0
    else:
        asked = getattr(header, "poll_time", 0)
    return min(asked, _LONGEST_MS) if asked > 0 else _UNSAID_MS


def less_patient(command: Command, waited_ms: int) -> None:
    """Takes the time that a read has waited from that for which it may be held."""
    header = command.read(READS[command.code])
    name = "suspend_timeout_millis" if isinstance(header, PullMessage) else "poll_time"
    if (asked := getattr(header, name, 0)) > 0:
        command.header = msgspec.structs.replace(header, **{name: max(0, asked - waited_ms)})
