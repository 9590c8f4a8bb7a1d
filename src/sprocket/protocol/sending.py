"""The request that sends one message, written quickly: a producer writes little else.

Sends of one producer group to one queue differ in five values only. They are written into the gaps
of a text that is made once; what comes out means what `encode_request` writes for a
`SendMessageV2`.
"""

from __future__ import annotations

import struct
from typing import Protocol

import msgspec

from sprocket.base.errors import LocalProtocolError
from sprocket.protocol.codes import LANGUAGE, VERSION
from sprocket.protocol.frame import PREFIX_BYTES
from sprocket.protocol.requests.send import SendMessageV2

_PREFIX = struct.Struct(">II")
_LENGTH_BYTES = PREFIX_BYTES // 2

#: Gaps: system flag, time of birth, flag, properties, opaque.
_FORM = (
    b'{"code":%d,"extFields":{"a":%b,"b":%b,"c":%b,"d":"%d","e":"%d","f":"%%d","g":"%%d",'
    b'"h":"%%d","i":%%b,"j":"0","k":"false","m":"false","n":%b},"flag":0,"language":"%b",'
    b'"opaque":%%d,"serializeTypeCurrentRPC":"JSON","version":%d}'
)

#: A text as JSON, with its quotes.
_quoted = msgspec.json.Encoder().encode


class Values(Protocol):
    """What one send does not have in common with others to the same queue."""

    @property
    def sys_flag(self) -> int: ...

    @property
    def born_ms(self) -> int: ...

    @property
    def flag(self) -> int: ...

    @property
    def properties(self) -> str: ...


class SendForm:
    """Writes sends of one producer group to one queue, with a JSON header."""

    __slots__ = ("_form",)

    def __init__(self, header: SendMessageV2) -> None:
        """
        Args:
            header: of one such send; counts for what all of them have in common.
        """
        texts = header.producer_group, header.topic, header.default_topic, header.bname or ""
        group, topic, template, broker = (_quoted(text).replace(b"%", b"%%") for text in texts)
        self._form = _FORM % (
            header.code, group, topic, template, header.default_topic_queue_nums, header.queue_id,
            broker, LANGUAGE.encode(), VERSION,
        )  # fmt: skip

    def head(self, opaque: int, values: Values, body_bytes: int) -> bytes:
        """What stands before the body in the frame.

        Raises:
            LocalProtocolError: the properties are no Unicode.
        """
        try:
            properties = _quoted(values.properties)
        except UnicodeEncodeError as error:
            raise LocalProtocolError(f"a property is not Unicode: {error}") from None
        header = self._form % (values.sys_flag, values.born_ms, values.flag, properties, opaque)
        size = len(header)
        return _PREFIX.pack(_LENGTH_BYTES + size + body_bytes, size) + header
