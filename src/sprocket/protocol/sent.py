"""The answer to a send, written quickly: a broker writes more of it than of anything else.

Most answers of one broker differ in five values only. They are written into the gaps of a text that
is made once; what comes out is what `encode_reply` writes for a `SendReply`.
"""

from __future__ import annotations

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

#: A text as JSON, with its quotes.
_quoted = msgspec.json.Encoder().encode


class Sent(Protocol):
    """What one answer says: where the message lies, and its unique key."""

    @property
    def log_offset(self) -> int: ...

    @property
    def queue_offset(self) -> int: ...

    @property
    def unique_key(self) -> str: ...


class SentForm:
    """Writes answers that say yes, with a JSON header."""

    __slots__ = ("_form",)

    def __init__(self, *, store_host: bytes, region: str, trace_on: str) -> None:
        """
        Args:
            store_host: packed address with which offset ids begin.
        """
        self._form = _FORM % (
            store_host.hex().upper().encode(),
            _quoted(region).replace(b"%", b"%%"),
            _quoted(trace_on).replace(b"%", b"%%"),
            RESPONSE,
            LANGUAGE.encode(),
            VERSION,
        )

    def frame(self, opaque: int, sent: Sent, queue_number: int, handle: bytes = b"") -> bytes:
        """A whole frame.

        Args:
            opaque: that of the request.
            queue_number: of the message's own queue, even while it waits in another one.
            handle: by which it can be taken back, if it can; letters of base64.

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
