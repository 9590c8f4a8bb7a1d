"""One request or reply, as it came or goes, and how its declared header is read.

A header is declared once as a `Header`; its wire names and types follow from the declaration.
On the wire every value is text, in a flat map (`extFields`).
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

import msgspec

from sprocket.base.errors import RemoteProtocolError

#: Bits of `Command.flag`. Source: RemotingCommand of RocketMQ 4.9 and 5.x.
RESPONSE = 0b01
ONEWAY = 0b10

#: Header serialisations, the top byte of the header length. Source: SerializeType.
JSON = 0
BINARY = 1

Buffer = bytes | bytearray | memoryview


class Header(msgspec.Struct, rename="camel"):
    """Base of all declared request and reply headers.

    Attributes are snake_case; wire names are camelCase unless a field names its own. Requests
    set `code`, RocketMQ's request code.
    """

    code: ClassVar[int] = 0


H = TypeVar("H", bound=Header)
