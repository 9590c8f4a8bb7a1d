"""What a peer did wrong, with the code that RFC 9113 has for it. Pure."""

from __future__ import annotations

from sprocket.base.errors import RemoteProtocolError


class ConnectionFault(RemoteProtocolError):
    """It ends the connection.

    Attributes:
        code: the error code of GOAWAY.
    """

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code


class StreamFault(RemoteProtocolError):
    """It ends one stream.

    Attributes:
        code: the error code of RST_STREAM.
    """

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code
