"""Options for the attributes of topics and groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from sprocket.base.errors import UsageError
from sprocket.message.topic_attributes import MESSAGE_TYPE

Attributes = Annotated[
    list[str] | None,
    typer.Option(
        "--attribute",
        "-a",
        metavar="NAME=VALUE",
        help="An attribute, for example reserve.time=72; may be given again.",
    ),
]
NoAttributes = Annotated[
    list[str] | None,
    typer.Option(
        "--no-attribute", metavar="NAME", help="An attribute to take away; may be given again."
    ),
]
MessageTypeOption = Annotated[
    str | None,
    typer.Option(
        "--message-type",
        metavar="TYPE",
        help="What its messages are: NORMAL, FIFO, DELAY, TRANSACTION, PRIORITY, LITE, MIXED.",
    ),
]


def attribute_changes(
    given: Sequence[str] | None,
    removed: Sequence[str] | None = None,
    message_type: str | None = None,
) -> dict[str, str | None] | None:
    """The attributes that a command names, by name; None takes one away. None if it names none.

    Raises:
        UsageError: one has no value, or is named twice.
    """
    changes: dict[str, str | None] = {}
    pairs = [_pair(text) for text in given or ()]
    if message_type is not None:
        pairs.append((MESSAGE_TYPE, message_type.upper()))
    for name, value in [*pairs, *((name, None) for name in removed or ())]:
        if name in changes:
            raise UsageError(f"attribute {name} is given twice")
        if any(sign in name for sign in "+-=,") or "," in (value or ""):
            raise UsageError(f"no attribute is {name!r}, and none holds a comma")
        changes[name] = value
    return changes or None


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if not name or not value:
        raise UsageError(f"--attribute takes NAME=VALUE, not {text!r}")
    return name.removeprefix("+"), value
