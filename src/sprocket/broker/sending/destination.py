"""Decides where each message is stored: one function from `Intake` to `Destination`. Pure.

A message is stored in the topic to which it was sent; or it waits first: as a half message for the
end of its transaction, in the queue of its delay level, or on the timer wheel. A message that a
consumer sends back goes to its group's retry topic, and may wait as well, or to the dead-letter
topic.

Where a further kind of wait is added: a watermark of replicas is one more in
`Acknowledgement.settled`. A message's priority has chosen its queue before (`SendReader`).
Source: HookUtils, SendMessageProcessor and AbstractSendMessageProcessor.consumerSendMsgBack of
RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from sprocket.base.errors import IllegalMessage, SystemFailure
from sprocket.broker.settings import BrokerSettings
from sprocket.delay.levels import schedule
from sprocket.delay.levels.levels import DelayLevels
from sprocket.delay.timers import timed
from sprocket.delay.timers.timed import TimedWait, TimerLimits
from sprocket.message import properties as names
from sprocket.message.lite import LiteName
from sprocket.message.properties import encode
from sprocket.message.record import TRANSACTION_MASK, Draft
from sprocket.message.topic import HALF, SCHEDULE, TIMER, dead_letter_topic, retry_topic
from sprocket.transaction import half

#: Properties that may make a message wait first. Most messages have none.
SPECIAL = names.ASK_FOR_TIME | {names.HALF, names.DELAY}
#: The delay level of the first retry; each further retry waits one level more.
_FIRST_RETRY_LEVEL = 3


class DelayRules(NamedTuple):
    """The broker's settings for messages that wait.

    Attributes:
        timer: limits of delivery times; None if timers are switched off.
        broker: the broker's name, which recall handles contain.
    """

    levels: DelayLevels
    timer: TimerLimits | None
    broker: str

    @classmethod
    def of(cls, settings: BrokerSettings, levels: DelayLevels) -> DelayRules:
        """The rules from the settings."""
        store = settings.store
        timer = TimerLimits(store.timer_slot_ms, store.timer_delay_seconds_max * 1000)
        return cls(levels, timer if store.timers else None, settings.config.name)


class Retry(NamedTuple):
    """How a message that a consumer sent back is retried.

    Attributes:
        times_max: how often the group's messages are retried at most.
        level: the delay level; 0 for the usual one, which rises with each retry; below 0 for no
            further retry; None for the level in the message's properties.
        queue_number: the queue of the group's retry topic.
        origin_id: the offset id of the record that is sent back; None if it arrived as a send.
    """

    group: str
    times_max: int
    level: int | None
    queue_number: int
    origin_id: str | None = None


class Intake(msgspec.Struct, frozen=True, gc=False):
    """A message as the broker receives it.

    Attributes:
        draft: the draft, with the topic and queue to which it was sent; the text of its properties
            is made later.
        properties: all properties.
        retry: how it is retried; None for a message that was not sent back.
        is_committed: whether its transaction was committed just now.
        parts: the messages of a batch; draft and properties are then those of the batch itself.
        inner_count: how many messages it holds, if it is a batch that is kept as one record.
        lite: its lite topic; None if it has none.
    """

    draft: Draft
    properties: Mapping[str, str]
    retry: Retry | None = None
    is_committed: bool = False
    parts: Sequence[Intake] = ()
    inner_count: int = 0
    lite: LiteName | None = None


class Destination(msgspec.Struct, gc=False):
    """Where a message is stored.

    Attributes:
        draft: the message as it is stored.
        topic: its own topic, in which consumers get it.
        queue_number: the queue of its own topic.
        is_awaited: whether the reply waits until the message is flushed.
        handle: the recall handle; empty if the message cannot be recalled.
        wait: its delivery time and slot; None if it has no delivery time.
        half: its properties, if it is a half message; otherwise None.
    """

    draft: Draft
    topic: str
    queue_number: int
    is_awaited: bool
    handle: bytes = b""
    wait: TimedWait | None = None
    half: Mapping[str, str] | None = None


def destination(intake: Intake, rules: DelayRules, *, now_ms: int) -> Destination:
    """Decides where a message is stored.

    Raises:
        IllegalMessage: its delivery time is invalid.
        SystemFailure: its delay level is no number, or timers are switched off.
    """
    draft, properties = intake.draft, intake.properties
    # A consumer that sends a message back commits past it after the reply, so the reply waits for
    # the flush, even if the first sender did not ask for that.
    is_awaited = properties.get(names.WAIT) != "false" or intake.is_committed
    topic, number = draft.topic, draft.queue_number
    if intake.retry is not None:
        topic, number, properties = _given_back(draft, properties, intake.retry)
        is_awaited = True
    stored_topic, stored_number, tag_code, sys_flag = topic, number, draft.tag_code, draft.sys_flag
    wait, is_half = None, False
    # A transaction has priority over a delay, so that the commit starts the delay; a delay level
    # has priority over a delivery time.
    if SPECIAL.isdisjoint(properties):
        pass
    elif not intake.is_committed and half.is_half(topic, properties):
        if schedule.level_in(properties) <= 0:  # else the commit would be refused
            _delivery_time(topic, properties, rules, now_ms=now_ms)
        properties = half.prepared(properties, topic=topic, queue_number=number)
        stored_topic, stored_number, is_half = HALF, half.QUEUE, True
        sys_flag &= ~TRANSACTION_MASK
    elif (level := schedule.level_in(properties)) > 0:
        level = rules.levels.clamp(level)
        properties = schedule.delay_by_level(properties, level, topic=topic, queue_number=number)
        stored_topic, stored_number = SCHEDULE, rules.levels.queue_of(level)
        tag_code = now_ms + rules.levels.delay_ms(level)
    elif (wait := _delivery_time(topic, properties, rules, now_ms=now_ms)) is not None:
        properties = timed.delay_until(properties, wait, topic=topic, queue_number=number)
        stored_topic, stored_number = TIMER, timed.QUEUE
    stored = replace(
        draft,
        topic=stored_topic,
        queue_number=stored_number,
        properties=encode(properties).encode("utf-8", "replace"),
        tag_code=tag_code,
        sys_flag=sys_flag,
    )
    is_put_off = names.TIMER_OUT_MS in properties
    handle = timed.handle_of(properties, rules.broker) if is_put_off else b""
    kept = properties if is_half else None
    return Destination(stored, topic, number, is_awaited, handle=handle, wait=wait, half=kept)


def _delivery_time(
    topic: str, properties: Mapping[str, str], rules: DelayRules, *, now_ms: int
) -> TimedWait | None:
    """The delivery time for which a message asks; None if it does not wait.

    Raises:
        IllegalMessage: it is invalid.
        SystemFailure: timers are switched off.
    """
    if not timed.asks_for_time(topic, properties):
        return None
    if rules.timer is None:
        raise SystemFailure("accurate timer message is not enabled, timerWheelEnable is false")
    return timed.wait_of(properties, rules.timer, now_ms=now_ms)


def draft_in_batch(intake: Intake) -> Draft:
    """The draft of a message of a batch, which is always stored in the topic of the batch.

    Raises:
        IllegalMessage: it asks for a delay, or belongs to a transaction.
    """
    check_batched(intake.properties)
    properties = encode(intake.properties).encode("utf-8", "replace")
    return replace(intake.draft, properties=properties)


def check_batched(properties: Mapping[str, str]) -> None:
    """Refuses a message of a batch that would have to wait, or to be in a further queue.

    Raises:
        IllegalMessage: it asks for a delay, belongs to a transaction, or has a lite topic.
    """
    if names.LITE_TOPIC in properties:
        raise IllegalMessage("messages of a batch cannot have lite topics")
    if properties.get(names.HALF, "").lower() == "true":
        raise IllegalMessage("messages of a batch cannot belong to transactions")
    if names.DELAY in properties or not names.ASK_FOR_TIME.isdisjoint(properties):
        raise IllegalMessage("messages of a batch cannot be delayed")


def is_given_up(draft: Draft, retry: Retry) -> bool:
    """Whether a message that was sent back becomes a dead letter instead of being retried."""
    asks_for_none = retry.level is not None and retry.level < 0
    return asks_for_none or draft.reconsume_times > retry.times_max


def _given_back(
    draft: Draft, properties: Mapping[str, str], retry: Retry
) -> tuple[str, int, dict[str, str]]:
    """Topic, queue and properties of a message that is retried or becomes a dead letter.

    Its first topic and the offset id of its first record are kept through all retries.
    """
    changed, level = dict(properties), retry.level
    if is_given_up(draft, retry):
        topic, number, level = dead_letter_topic(retry.group), 0, 0
    else:
        topic, number = retry_topic(retry.group), retry.queue_number
        if level == 0:
            level = _FIRST_RETRY_LEVEL + draft.reconsume_times - 1
    if level is not None:
        changed[names.DELAY] = str(level)
    if retry.origin_id is not None:
        changed.setdefault(names.RETRY_TOPIC, draft.topic)
        changed.setdefault(names.ORIGIN_ID, retry.origin_id)
        changed[names.WAIT] = "false"
    return topic, number, changed
