"""Operations that move groups: reset, skip, copy of offsets; dead letters, listed and sent back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from sprocket.admin import known, messages, positions, resend, topics
from sprocket.base.errors import TopicNotFound, UsageError
from sprocket.console.operations.declare import Declarations, OperationEnvironment
from sprocket.console.operations.groups import PROGRESS_CODES
from sprocket.console.operations.message_facts import BodyBytes, MessageFacts
from sprocket.console.operations.messages import FoundMessages, taken_of
from sprocket.console.operations.values import (
    Asked,
    ChangeAsked,
    ChangeLine,
    ChangeReport,
    GroupName,
    Limit,
    Offset,
    OneBroker,
    OnlyTopic,
    QueueNumber,
    Since,
    TopicName,
    Until,
    fields_of,
    ms_of,
)
from sprocket.message.message import StoredMessage
from sprocket.message.offsets import LONG_MAX
from sprocket.message.queue import QueueId
from sprocket.message.topic import dead_letter_topic
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.requests.offset import OffsetReply, SearchOffset

declared = Declarations()

_LETTERS_MAX = 1_000


class ResetAsked(ChangeAsked, frozen=True, kw_only=True):
    """Where a group is to go on in a topic: at the beginning, the end, a time or an offset."""

    group: GroupName
    topic: TopicName
    to: Annotated[
        Annotated[str, Meta(pattern="^(first|last)$")] | None,
        Meta(description="`first`: the oldest message; `last`: the end."),
    ] = None
    at: Annotated[Since, Meta(description="The first message that was stored then or later.")] = (
        None
    )
    broker: Annotated[OneBroker | None, Meta(description="With queue: only this one.")] = None
    queue: QueueNumber | None = None
    offset: Annotated[Offset | None, Meta(description="The offset, in one queue.")] = None


class SkipAsked(ChangeAsked, frozen=True, kw_only=True):
    """What a group is to leave out."""

    group: GroupName
    topic: TopicName


class CloneAsked(ChangeAsked, frozen=True, kw_only=True):
    """Whose offsets which group gets."""

    group: Annotated[GroupName, Meta(description="The group whose offsets are copied.")]
    target: Annotated[GroupName, Meta(description="The group that gets them.")]
    topic: OnlyTopic = None


class LettersAsked(Asked, frozen=True, kw_only=True):
    """Which dead letters."""

    group: GroupName
    since: Since = None
    until: Until = None
    limit: Limit = 100
    body_bytes: BodyBytes = 1_024


class LettersResent(ChangeAsked, frozen=True, kw_only=True):
    """Which dead letters are sent again."""

    group: GroupName
    ids: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=128)]],
        Meta(max_length=_LETTERS_MAX, description="Offset ids, as the list shows them."),
    ] = msgspec.field(default_factory=list)
    all: Annotated[
        bool, Meta(description=f"All of them, or those of a time; at most {_LETTERS_MAX}.")
    ] = False
    since: Since = None
    until: Until = None
    to_topic: Annotated[
        bool, Meta(description="Whether they go to their topics, and so to all groups of these.")
    ] = False


@declared.changes(
    "groups.reset",
    "POST /groups/{group}/reset",
    codes=[
        *PROGRESS_CODES,
        RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
        RequestCode.GET_TOPIC_STATS_INFO,
    ],
    is_destructive=True,
)
async def reset(given: OperationEnvironment, asked: ResetAsked) -> ChangeReport:
    """Resets a group's offsets in a topic; it consumes again, or leaves out, what lies between."""
    if (asked.to is not None) + (asked.at is not None) + (asked.offset is not None) != 1:
        raise UsageError("give one of to, at and offset")
    if (asked.broker is None) != (asked.queue is None):
        raise UsageError("a queue is a broker and a number: give broker and queue")
    queue = None
    if asked.broker is not None and asked.queue is not None:
        queue = QueueId(asked.topic, asked.broker, asked.queue)
    if asked.offset is not None and queue is None:
        raise UsageError("an offset is that of one queue: give broker and queue")
    at_ms = positions.LAST if asked.to == "last" else ms_of(asked.at, positions.FIRST)
    return await _moved(given, asked, at_ms, queue=queue, offset=asked.offset)


@declared.changes(
    "groups.skip",
    "POST /groups/{group}/skip",
    codes=[
        *PROGRESS_CODES,
        RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
        RequestCode.GET_TOPIC_STATS_INFO,
    ],
    is_destructive=True,
)
async def skip(given: OperationEnvironment, asked: SkipAsked) -> ChangeReport:
    """Has a group leave out all messages of a topic that it has not consumed."""
    return await _moved(given, asked, positions.LAST)


@declared.changes(
    "groups.clone",
    "POST /groups/{group}/clone",
    codes=[*PROGRESS_CODES, RequestCode.CLONE_GROUP_OFFSET],
    is_destructive=True,
)
async def clone(given: OperationEnvironment, asked: CloneAsked) -> ChangeReport:
    """Copies a group's committed offsets to another group."""
    before = await _committed(given, asked.target, asked.topic)
    if asked.dry_run:
        await known.check_group(given.caller, asked.group)
        after = await _committed(given, asked.group, asked.topic)
    else:
        after = await positions.clone(given.caller, asked.group, asked.target, topic=asked.topic)
    return _report(asked, before, after)


@declared.reads(
    "dead_letters.list",
    "/groups/{group}/dead-letters",
    codes=[RequestCode.PULL_MESSAGE, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP],
)
async def letters(given: OperationEnvironment, asked: LettersAsked) -> FoundMessages:
    """Lists a group's dead letters."""
    found, is_cut = await _letters(given, asked, asked.limit, asked.body_bytes)
    return FoundMessages(messages=found, is_cut=is_cut)


@declared.changes(
    "dead_letters.resend",
    "POST /groups/{group}/dead-letters/resend",
    codes=[RequestCode.VIEW_MESSAGE_BY_ID, RequestCode.SEND_MESSAGE_V2],
    is_destructive=True,
)
async def again(given: OperationEnvironment, asked: LettersResent) -> ChangeReport:
    """Sends dead letters to their group again; they also stay in the list."""
    if bool(asked.ids) == asked.all:
        raise UsageError("give ids, or all")
    ids = asked.ids
    if asked.all:
        ids = [each.offset_id for each in (await _letters(given, asked, _LETTERS_MAX, 0))[0]]
    else:
        for each in ids:
            await _letter(given, asked.group, each)
    if ids and not asked.to_topic:
        await resend.check_takes_retries(given.caller, asked.group)
    changes = []
    for each in ids:  # one after the other, so that only one body is in memory
        sent = None
        if not asked.dry_run:
            letter = await _letter(given, asked.group, each)
            sent = (
                await resend.resend(given.caller, letter)
                if asked.to_topic
                else await resend.put_back(given.caller, letter, asked.group)
            )
        changes.append(ChangeLine(what=f"message {each}", after=fields_of(sent)))
    return ChangeReport(dry_run=asked.dry_run, changes=changes)


async def _letter(given: OperationEnvironment, group: str, offset_id: str) -> StoredMessage:
    letter = await messages.view(given.caller, offset_id)
    if letter.topic != dead_letter_topic(group):
        raise UsageError(
            f"{offset_id} is no dead letter of {group}: it is stored in {letter.topic}"
        )
    return letter


async def _letters(
    given: OperationEnvironment, asked: LettersAsked | LettersResent, limit: int, body_bytes: int
) -> tuple[list[MessageFacts], bool]:
    found = resend.dead_letters(
        given.caller,
        asked.group,
        begin_ms=ms_of(asked.since, 0),
        end_ms=ms_of(asked.until, LONG_MAX),
    )
    try:
        return await taken_of(found, limit, body_bytes)
    except TopicNotFound:  # the group has no dead letters, or does not exist
        await known.check_group(given.caller, asked.group)
        return [], False


async def _moved(
    given: OperationEnvironment,
    asked: ResetAsked | SkipAsked,
    at_ms: int,
    *,
    queue: QueueId | None = None,
    offset: int | None = None,
) -> ChangeReport:
    await known.check_group(given.caller, asked.group)
    before = await _committed(given, asked.group, asked.topic)
    if asked.dry_run:
        after = await _planned(given, asked.topic, at_ms, queue=queue, offset=offset)
    else:
        after = await positions.reset(
            given.caller, asked.group, asked.topic, at_ms=at_ms, queue=queue, offset=offset
        )
    return _report(asked, before, after)


async def _planned(
    given: OperationEnvironment,
    topic: str,
    at_ms: int,
    *,
    queue: QueueId | None,
    offset: int | None,
) -> dict[QueueId, int]:
    """The offsets that a reset would set."""
    masters = await topics.masters_of(given.caller, topic)
    planned = {}
    for each in await topics.status(given.caller, topic):
        here = QueueId(topic, each.broker, each.number)
        if queue not in (None, here):
            continue
        if offset is not None:
            if not each.min_offset <= offset <= each.max_offset:
                raise UsageError(f"{here} has {each.min_offset} to {each.max_offset}")
            planned[here] = offset
        elif at_ms in (positions.FIRST, positions.LAST):
            planned[here] = each.min_offset if at_ms == positions.FIRST else each.max_offset
        else:
            search = SearchOffset(topic=topic, queue_id=each.number, timestamp=at_ms)
            reply = await given.caller.ask(masters[each.broker], search)
            planned[here] = reply.read(OffsetReply).offset
    if not planned:
        raise UsageError(f"no broker holds {topic if queue is None else queue}")
    return planned


async def _committed(
    given: OperationEnvironment, group: str, topic: str | None
) -> dict[QueueId, int]:
    lag = await positions.lag(given.caller, group, topic=topic)
    return {QueueId(each.topic, each.broker, each.number): each.committed for each in lag.queues}


def _report(
    asked: ChangeAsked, before: Mapping[QueueId, int], after: Mapping[QueueId, int]
) -> ChangeReport:
    changes = [
        ChangeLine(
            what=f"queue {queue.number} of {queue.topic}",
            broker=queue.broker,
            before=before.get(queue),
            after=offset,
        )
        for queue, offset in sorted(after.items())
    ]
    return ChangeReport(dry_run=asked.dry_run, changes=changes)
