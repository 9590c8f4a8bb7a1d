"""What a console is started with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sprocket.protocol.signing import Signer
from sprocket.remoting.tls.settings import ClientTls
from sprocket.schemas.body_codec import BodyCodec


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """The settings of a console.

    Attributes:
        nameservers: `host:port` of each.
        is_read_only: whether nothing can be changed.
        timeout_ms: time limit of each request to a server.
        host_names: names by which browsers may call the console, besides localhost, addresses and
            the name of this machine.
        signer: signs the requests by which the console samples figures; None for unsigned ones.
        audit_folder: the audit logs of the servers of this machine; None for none.
        reports: folder with reports of Spark pipelines; None for none.
        tls: how connections to the servers speak TLS; None for plain ones.
        is_secure: whether browsers come by https, so that cookies are for https only.
        bodies: decodes bodies that begin with the number of a schema; None for none.
    """

    nameservers: Sequence[str]
    is_read_only: bool = False
    timeout_ms: float = 5_000
    host_names: Sequence[str] = ()
    signer: Signer | None = None
    audit_folder: Path | None = None
    reports: Path | None = None
    tls: ClientTls | None = None
    is_secure: bool = False
    bodies: BodyCodec | None = None
