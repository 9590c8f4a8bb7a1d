"""A node with TLS only and with users, as frameworks find it in production."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from sprocket.broker.config import BrokerConfig
from sprocket.remoting.tls.settings import TlsConfig
from tests.certificates import Authority
from tests.cli.closed import INNER, KEYS, ROOT
from tests.cli.parts import running_node, sprocket

#: A user who may send to some topics and consume them, and no more.
USER, PASSWORD = "worker", "worker's: /@"


class ClosedNode(NamedTuple):
    """Such a node.

    Attributes:
        names: the address of its name server.
        authorities: the file of the authority of its certificate.
    """

    names: str
    authorities: str

    @property
    def client(self) -> dict[str, Any]:
        """Settings of clients with the user's keys."""
        return {
            "access_key": USER, "secret_key": PASSWORD,
            "tls": True, "tls_authorities": self.authorities,
        }  # fmt: skip


@contextmanager
def closed_node(
    authority: Authority, folder: Path, topics: Iterable[str], mail: Sequence[str] = ()
) -> Iterator[ClosedNode]:
    """Runs one with these topics, to which the user may send and which he may consume."""
    issued = authority.issue("closed-node")
    tls = TlsConfig(
        mode="enforcing",
        certificate=issued.certificate,
        key=issued.key,
        outgoing_authorities=authority.path,
    )
    rules = BrokerConfig(
        port=0, authentication=True, authorization=True, first_user=ROOT, inner_keys=INNER
    )
    with running_node(str(folder), tls, rules) as names:

        def operate(*words: str) -> None:
            done = sprocket(
                *words, "--nameserver", names, "--tls-authorities", authority.path,
                **KEYS, SPROCKET_USER_PASSWORD=PASSWORD,
            )  # fmt: skip
            assert done.code == 0, done.err

        operate("user", "create", USER)
        for topic in (*topics, *mail):
            operate("topic", "create", topic, "--queues", "1")
            operate("acl", "grant", USER, f"Topic:{topic}", "Pub", "Sub")
        for topic in topics:
            operate("acl", "grant", USER, f"Group:{topic}", "Sub")
        if mail:
            operate("acl", "grant", USER, "Group:sprocket-tasks", "Sub")
        yield ClosedNode(names, authority.path)
