"""The trace messages of RocketMQ's clients: when a message was sent, consumed, recalled. Pure.

A trace message holds several events. U+0002 ends an event, U+0001 separates its fields, and the
first field is its kind. Older clients leave out the last fields. An empty text or `null` is null.

Source: TraceDataEncoder and TraceConstants of RocketMQ 4.9 and 5.x.
"""

from __future__ import annotations

from collections.abc import Iterator

EVENT_END = "\x02"
FIELD_END = "\x01"

#: Fields of each kind of event, after the kind itself.
FIELDS = {
    "Pub": (
        "at_ms", "region", "group", "topic", "message_id", "tag", "keys", "store_host",
        "body_bytes", "cost_ms", "message_type", "offset_id", "is_ok", "client_host",
    ),
    "SubBefore": ("at_ms", "region", "group", "request_id", "message_id", "retries", "keys"),
    "SubAfter": (
        "request_id", "message_id", "cost_ms", "is_ok", "keys", "code", "at_ms", "group",
    ),
    "EndTransaction": (
        "at_ms", "region", "group", "topic", "message_id", "tag", "keys", "store_host",
        "message_type", "transaction_id", "state", "from_check",
    ),
    "Recall": ("at_ms", "region", "group", "topic", "message_id", "is_ok"),
}  # fmt: skip
#: Fields of a Pub event from clients older than offset ids, with its kind.
OLD_PUB_FIELDS = 13
_NULLS = ("", "null")


def events_of(body: bytes, message_id: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The events in a trace message that concern one message: kind, and fields by name.

    What is no event is left out, as are fields that say nothing. The event of a batch has the ids
    of all its messages, separated by commas.
    """
    if message_id.encode() not in body:
        return
    for text in body.decode(errors="replace").split(EVENT_END):
        kind, *values = text.split(FIELD_END)
        if kind not in FIELDS:
            continue
        names = FIELDS[kind]
        if kind == "Pub" and len(values) + 1 == OLD_PUB_FIELDS:
            names = tuple(name for name in names if name != "offset_id")
        fields = {
            name: value for name, value in zip(names, values, strict=False) if value not in _NULLS
        }
        if message_id in fields.get("message_id", "").split(","):
            yield kind, fields
