"""One request or reply, and its declared header.

A header is declared once as a `Header`; its wire names and types follow from the declaration.
On the wire the header is a flat map of texts (`extFields`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Self, TypeVar

import msgspec

from sprocket.base.errors import ReplyError
from sprocket.message.offsets import LONG_MAX
from sprocket.protocol import fields
from sprocket.protocol.codes import LANGUAGE, VERSION

#: Bits of `Command.flag`. Source: RemotingCommand of RocketMQ 4.9 and 5.x.
RESPONSE = 0b01
ONEWAY = 0b10

#: Header serialisations, the top byte of the header length. Source: SerializeType.
JSON = 0
BINARY = 1

#: The most bytes and fields of an accepted header, so that reading one takes some milliseconds. A
#: valid one has at most 32 KiB of properties, six times as long where each byte is escaped, in
#: about 20 fields. But a client whose properties are far too long should get an answer that says
#: so.
HEADER_BYTES_MAX = 8 << 20
HEADER_FIELDS_MAX = 4_096

Buffer = bytes | bytearray | memoryview

#: Java's int and long. A larger number is refused, as in Java.
Int = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Long = Annotated[int, msgspec.Meta(ge=-(2**63), le=LONG_MAX)]


# gc=False: headers hold plain values, never form a cycle, and need no garbage collector.
class Header(msgspec.Struct, rename="camel", gc=False):
    """Base of all declared request and reply headers.

    Attributes are snake_case; wire names are camelCase unless a field declares its own. Requests
    set `code`, RocketMQ's request code, and `reply`, the header of a successful reply if it has
    one. A None is not written.
    """

    code: ClassVar[int] = 0
    reply: ClassVar[type[Header] | None] = None

    def to_fields(self) -> dict[str, str]:
        """All fields that are not None, as text under their wire names."""
        return fields.to_texts(self)

    def to_wire(self) -> msgspec.Struct | dict[str, str]:
        """The same for the JSON encoder: the map of `to_fields`, or a struct of texts."""
        return self.to_fields()


H = TypeVar("H", bound=Header)


class Reply(msgspec.Struct, gc=False):
    """The reply that a server's function returns.

    Attributes:
        header: its declared header, if it has one.
        body: bytes, or several parts that are written one after the other without a copy.
        code: RocketMQ's response code; 0 is success.
        remark: a text for people, or None.
    """

    header: Header | None = None
    body: Buffer | Sequence[Buffer] = b""
    code: int = 0
    remark: str | None = None


class Command(msgspec.Struct, gc=False):
    """One request or reply.

    Attributes:
        code: the request code, or the response code.
        opaque: the number that pairs a reply with its request; any 32-bit number, also negative.
        flag: `RESPONSE`, `ONEWAY`.
        language: name of the sender's language; any text.
        version: number of the sender's RocketMQ version.
        remark: a text for people, mostly in error replies.
        body: bytes, or a view of the received data. A view keeps all of that alive, so copy what
            you keep.
        serialization: `JSON` or `BINARY`; the reply uses the same.
        source: the header fields as received: texts, an undecoded JSON object, or the whole JSON
            header that contains it.
        header: the declared header, if it was decoded together with the rest.
        user: who signed it, once the server has checked that; empty if it did not have to be
            checked.
    """

    code: int
    opaque: int = 0
    flag: int = 0
    language: str = LANGUAGE
    version: int = VERSION
    remark: str | None = None
    body: Buffer = b""
    serialization: int = JSON
    source: msgspec.Raw | bytes | dict[str, str] = {}
    header: Header | None = None
    user: str | None = None

    @classmethod
    def request(cls, header: Header, *, body: Buffer = b"", opaque: int = 0) -> Command:
        """A request as a server would receive it, made from its header."""
        return cls(header.code, opaque, body=body, source=header.to_fields())

    @property
    def is_response(self) -> bool:
        """Whether it is a reply."""
        return bool(self.flag & RESPONSE)

    def error(self) -> ReplyError:
        """The error that a reply stands for whose code is no success."""
        return ReplyError.of(self.code, self.remark or "")

    def checked(self) -> Self:
        """This reply, if its code is 0.

        Raises:
            ReplyError: it is not.
        """
        if self.code:
            raise self.error()
        return self

    @property
    def is_oneway(self) -> bool:
        """Whether the sender expects no reply."""
        return bool(self.flag & ONEWAY)

    @property
    def fields(self) -> Mapping[str, str]:
        """All header fields as text, under their wire names.

        Raises:
            RemoteProtocolError: the fields are no JSON object.
        """
        # Decoded on first use: most commands are read with `read` only, which skips this map.
        source = self.source
        if isinstance(source, bytes):
            source = fields.fields_in_header(source)
        if not isinstance(source, dict):
            source = self.source = fields.texts_in_json(source)
        return source

    def read(self, header: type[H]) -> H:
        """The header as an instance of its declaration. Unknown fields are ignored.

        Raises:
            RemoteProtocolError: a field is missing or ill-typed; the text names it.
        """
        if type(self.header) is header:
            return self.header
        source = self.source
        if not isinstance(source, (dict, bytes)):
            try:
                return fields.decoder_of(header).decode(source)
            except fields.MALFORMED:
                pass
        return fields.from_texts(self.fields, header)
