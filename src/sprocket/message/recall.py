"""The handle with which a timed message can be recalled before its time. Pure.

Five words with a blank between them, in URL-safe base64: `v1`, topic, broker name, the time at
which the message is due in ms, and its unique key. The handle is not signed: anyone who knows
these values can make one.
Source: RecallMessageHandle of RocketMQ 5.3.
"""

from __future__ import annotations

import base64
from binascii import b2a_base64
from typing import NamedTuple

from sprocket.base.errors import UsageError

_VERSION = "v1"
#: Longer handles are refused: topic, broker and key have some hundred bytes together.
_TEXT_MAX = 4096


#: From base64 to its URL-safe form.
_URL_SAFE = bytes.maketrans(b"+/", b"-_")


def encode_handle(topic: str, broker: str, due_ms: int | str, unique_key: str) -> bytes:
    """The text of a handle, in ASCII."""
    words = f"{_VERSION} {topic} {broker} {due_ms} {unique_key}"
    return b2a_base64(words.encode(), newline=False).translate(_URL_SAFE)


class RecallHandle(NamedTuple):
    """The content of a handle.

    Attributes:
        topic, broker: where the message was sent.
        due_ms: the time until which the broker keeps it; a text, since a handle comes from outside.
        unique_key: the id from its sender.
    """

    topic: str
    broker: str
    due_ms: str
    unique_key: str

    def encode(self) -> str:
        """The handle as text."""
        return encode_handle(*self).decode("ascii")

    @classmethod
    def parse(cls, text: str) -> RecallHandle:
        """Parses a handle.

        Raises:
            UsageError: it is no recall handle.
        """
        try:
            if not isinstance(text, str) or not text or len(text) > _TEXT_MAX:
                raise ValueError
            raw = text.encode("ascii")
            padded = raw + b"=" * (-len(raw) % 4)
            words = base64.b64decode(padded, altchars=b"-_", validate=True).decode().split(" ")
            if words[0] != _VERSION or len(words) < 5:
                raise ValueError
        except ValueError:
            raise UsageError("recall handle is invalid") from None
        return cls(*words[1:5])
