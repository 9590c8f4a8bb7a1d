"""The operation that follows a message by what clients with tracing have written of it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from sprocket.admin import messages
from sprocket.base.errors import TopicNotFound
from sprocket.console.operations.declare import Declarations, OperationEnvironment
from sprocket.console.operations.values import Asked, TopicName, time_of
from sprocket.message.message import StoredMessage
from sprocket.message.topic import TRACE
from sprocket.message.traces import events_of
from sprocket.protocol.codes import RequestCode

declared = Declarations()

#: Steps in an answer. A message that is consumed more often is shown from its first.
_STEPS_MAX = 500
#: Trace messages that are asked of each broker.
_MESSAGES_MAX = 64
_TEXT_MAX = 300
#: What a listener's result means. Source: ConsumeReturnType of RocketMQ 5.x, by its numbers.
_RESULTS = ("success", "timed out", "raised an error", "returned nothing", "failed")


class TraceAsked(Asked, frozen=True, kw_only=True):
    """Which message, and where its traces are."""

    id: Annotated[str, Meta(min_length=1, max_length=128, description="The unique id.")]
    trace_topic: Annotated[
        TopicName, Meta(description="The topic to which clients write their traces.")
    ] = TRACE


class TraceStep(msgspec.Struct, frozen=True, kw_only=True):
    """What a client has said of a message. What it says is data, and times are of its clock."""

    what: Literal["sent", "consumed", "transaction ended", "recalled"]
    at: Annotated[datetime | None, Meta(description="When it began.")]
    group: str | None
    client: Annotated[str, Meta(description="Address of the client that wrote the trace.")]
    took_ms: Annotated[int | None, Meta(description="How long it took, ms.")] = None
    is_ok: Annotated[
        bool | None, Meta(description="Whether it succeeded; null while its end is not known.")
    ] = None
    result: Annotated[str | None, Meta(description="What became of it, if the client says.")] = None
    retries: Annotated[int | None, Meta(description="How often it had been given back.")] = None


class MessageTrace(msgspec.Struct, frozen=True, kw_only=True):
    """The way of a message, the first step first."""

    steps: list[TraceStep]
    is_cut: Annotated[bool, Meta(description="Whether there were more than one answer holds.")] = (
        False
    )


@declared.reads("messages.trace", "/messages/{id}/trace", codes=[RequestCode.QUERY_MESSAGE])
async def trace(given: OperationEnvironment, asked: TraceAsked) -> MessageTrace:
    """Follows a message by its clients' traces: who sent it, and who consumed it, when, how long.

    Only clients with tracing write them, Java's (`enableMsgTrace`) and Sprocket's alike.
    """
    try:
        found = await messages.query(
            given.caller, asked.trace_topic, asked.id, count_max=_MESSAGES_MAX
        )
    except TopicNotFound:
        return MessageTrace(steps=[])
    steps = steps_of(found, asked.id)
    return MessageTrace(steps=steps[:_STEPS_MAX], is_cut=len(steps) > _STEPS_MAX)


def steps_of(traces: Iterable[StoredMessage], message_id: str) -> list[TraceStep]:
    """The steps of a message, in their order. Pure.

    A consumption has two events, its begin and its end, which have the same request id.
    """
    steps: list[TraceStep] = []
    begun: dict[str, int] = {}
    ends: dict[str, dict[str, str]] = {}
    for message in traces:
        client = message.born_host.rpartition(":")[0]
        for kind, fields in events_of(message.body, message_id):
            request = fields.get("request_id", "")
            if kind == "SubAfter":
                ends[request] = fields
                continue
            if kind == "SubBefore":
                if request in begun:
                    continue
                begun[request] = len(steps)
            steps.append(_step(kind, fields, client))
    for request, at in begun.items():
        if end := ends.get(request):
            steps[at] = msgspec.structs.replace(
                steps[at],
                took_ms=_number(end.get("cost_ms")),
                is_ok=_truth(end.get("is_ok")),
                result=_result(end.get("code")),
            )
    return sorted(steps, key=lambda step: step.at.timestamp() if step.at else 0.0)


def _step(kind: str, fields: dict[str, str], client: str) -> TraceStep:
    whats: dict[str, Literal["sent", "consumed", "transaction ended", "recalled"]] = {
        "Pub": "sent",
        "SubBefore": "consumed",
        "EndTransaction": "transaction ended",
        "Recall": "recalled",
    }
    at_ms = _number(fields.get("at_ms"))
    group, state = fields.get("group"), fields.get("state")
    return TraceStep(
        what=whats[kind],
        at=None if at_ms is None else time_of(at_ms),
        group=None if group is None else group[:_TEXT_MAX],
        client=client,
        took_ms=_number(fields.get("cost_ms")),
        is_ok=_truth(fields.get("is_ok")),
        result=None if state is None else state[:_TEXT_MAX],
        retries=_number(fields.get("retries")),
    )


def _number(text: str | None) -> int | None:
    if text is None or not text.isascii() or not text.isdecimal() or len(text) > 15:
        return None
    return int(text)


def _truth(text: str | None) -> bool | None:
    return {"true": True, "false": False}.get(text or "")


def _result(code: str | None) -> str | None:
    number = _number(code)
    return _RESULTS[number] if number is not None and number < len(_RESULTS) else None
