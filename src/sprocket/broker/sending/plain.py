"""Reads the properties of most messages without parsing them. Pure.

The messages of a producer differ in their unique keys, but rarely in their other properties. So the
text around the unique key is parsed once and cached, and the next message with the same text costs
two cuts and a look-up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sprocket.broker.sending.destination import SPECIAL
from sprocket.broker.sending.stamp import REWRITTEN
from sprocket.message.hashing import tag_code
from sprocket.message.properties import (
    KEYS,
    LITE_TOPIC,
    NAME_END,
    PAIR_END,
    PRIORITY,
    TAGS,
    UNIQUE_KEY,
    WAIT,
    decode,
    is_text_of,
)

#: Properties that are not stored unchanged, or that choose the queue, or a further one.
CHANGED = SPECIAL | REWRITTEN | {PRIORITY, LITE_TOPIC}
_MARK = UNIQUE_KEY + NAME_END
#: Texts in the cache, and characters of each, at most.
TEXTS_MAX = 1024
TEXT_LENGTH_MAX = 512


class Plain(NamedTuple):
    """The properties of a message whose text of properties is stored unchanged.

    Attributes:
        properties: all but the unique key; for reading only.
        is_awaited: whether its sender waits until it is flushed.
    """

    properties: Mapping[str, str]
    tag_code: int
    keys: str
    is_awaited: bool


_UNKNOWN = Plain({}, 0, "", is_awaited=True)
#: Part of the names of all properties that ask for a delivery time.
TIME = "TIMER_DEL"


class PlainTexts:
    """Recognises texts of properties that are stored unchanged."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        #: By the text before and behind the unique key; None if it is not plain.
        self._known: dict[tuple[str, str], Plain | None] = {}

    def read(self, text: str) -> tuple[str, Plain] | None:
        """The unique key and the other properties of a plain text.

        Returns:
            None if the text must be parsed: it has no unique key, has a property that the broker
            changes, or has another form than the broker would write.
        """
        before, _, rest = text.partition(_MARK)
        unique_key, end, after = rest.partition(PAIR_END)
        if not unique_key or not end:
            return None
        around = (before, after)
        plain = self._known.get(around, _UNKNOWN)
        if plain is _UNKNOWN:
            plain = self._learn(text, around)
        return None if plain is None else (unique_key, plain)

    def _learn(self, text: str, around: tuple[str, str]) -> Plain | None:
        if TIME in text:  # times are rarely the same twice either
            return None
        properties = decode(text)
        is_plain = (
            around[0][-1:] in ("", PAIR_END)
            and CHANGED.isdisjoint(properties)
            and is_text_of(text, properties)
        )
        properties.pop(UNIQUE_KEY, None)
        keys = properties.get(KEYS, "")
        plain = None
        if is_plain:
            plain = Plain(
                properties,
                tag_code(properties.get(TAGS)),
                keys,
                is_awaited=properties.get(WAIT) != "false",
            )
        if not keys and len(text) <= TEXT_LENGTH_MAX:  # keys are rarely the same twice
            if len(self._known) >= TEXTS_MAX:
                self._known.clear()
            self._known[around] = plain
        return plain
