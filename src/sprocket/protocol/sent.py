"""A fast encoder for the reply to a send, the most frequent reply while producers are busy.

Most such replies of one broker differ in five values only. These are formatted into a template
that is built once; the result equals that of `encode_reply` for a `SendReply`.
"""

from __future__ import annotations

import re
import struct
from typing import Protocol

import msgspec

from sprocket.base.errors import LocalProtocolError
from sprocket.protocol.codes import LANGUAGE, VERSION
from sprocket.protocol.command import RESPONSE
from sprocket.protocol.frame import PREFIX_BYTES

_PREFIX = struct.Struct(">II")
_LENGTH_BYTES = PREFIX_BYTES // 2

#: Gaps: log offset, queue number, queue offset, unique key, opaque.
_FORM = (
    b'{"code":0,"extFields":{"msgId":"%b%%016X","queueId":"%%d","queueOffset":"%%d",'
    b'"transactionId":%%b,"MSG_REGION":%b,"TRACE_ON":%b},"flag":%d,"language":"%b",'
    b'"opaque":%%d,"serializeTypeCurrentRPC":"JSON","version":%d}'
)

_GAP = re.compile(rb"(%%|%016X|%[db])")

#: A text as JSON, with its quotes.
_quoted = msgspec.json.Encoder().encode


class SendResult(Protocol):
    """The values of one reply: where the message is stored, and its unique key."""

    @property
    def log_offset(self) -> int: ...

    @property
    def queue_offset(self) -> int: ...

    @property
    def unique_key(self) -> str: ...


class SentForm:
    """Encodes replies to successful sends, with a JSON header."""

    __slots__ = ("_form",)

    def __init__(self, *, store_host: bytes, region: str, trace_on: str) -> None:
        """
        Args:
            store_host: the packed address at the beginning of offset ids.
        """
        self._form = _FORM % (
            store_host.hex().upper().encode(),
            _quoted(region).replace(b"%", b"%%"),
            _quoted(trace_on).replace(b"%", b"%%"),
            RESPONSE,
            LANGUAGE.encode(),
            VERSION,
        )

    @property
    def pieces(self) -> list[bytes]:
        """The header around its gaps: log offset (16 hexadecimal digits), queue number, queue
        offset, unique key (with quotes), opaque."""
        pieces = [b""]
        for part in _GAP.split(self._form):
            if part == b"%%":
                pieces[-1] += b"%"
            elif part.startswith(b"%"):
                pieces.append(b"")
            else:
                pieces[-1] += part
        return pieces

    def frame(self, opaque: int, sent: SendResult, queue_number: int, handle: bytes = b"") -> bytes:
        """A whole frame.

        Args:
            opaque: that of the request.
            queue_number: of the message's own queue, even while it waits in another one.
            handle: its recall handle in base64, if it can be recalled.

        Raises:
            LocalProtocolError: the unique key is no Unicode.
        """
        try:
            unique_key = _quoted(sent.unique_key)
            if handle:
                unique_key = b'%b,"recallHandle":"%b"' % (unique_key, handle)
        except UnicodeEncodeError as error:
            raise LocalProtocolError(f"a unique key is not Unicode: {error}") from None
        header = self._form % (
            sent.log_offset, queue_number, sent.queue_offset, unique_key, opaque
        )  # fmt: skip
        size = len(header)
        return _PREFIX.pack(_LENGTH_BYTES + size, size) + header
