"""Admission of requests that arrive together, whatever part of them is answered at a time."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.errors import SystemBusy
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.send import SendMessageV2
from sprocket.quotas.admission import Admission
from sprocket.remoting.endpoints import EventualResponse
from sprocket.remoting.inner_peer import InnerPeer
from sprocket.remoting.transport import Peer

RULES = ("client * requests=50/80 bytes_in=5000/9000", "topic b requests=20/30")


def sends(topics: str, size: int) -> list[Command]:
    """Sends of so many bytes, one to each topic."""
    return [
        Command.request(SendMessageV2(producer_group="p", topic=t, queue_id=0), body=b"x" * size)
        for t in topics
    ]


class Server:
    """Answers as many of the first requests as it is told."""

    def __init__(self) -> None:
        self.now = 0.0
        self.rules: Sequence[str] = RULES
        self.admission = Admission(lambda: self.rules, clock=lambda: self.now)
        self.takes = 1
        self.stored: list[Command] = []
        self.refused = 0

    def answer(self, commands: Sequence[Command], peer: Peer) -> Sequence[EventualResponse]:
        done = commands[: self.takes]
        self.stored += done
        return [Reply() for _ in done]

    def receive(self, commands: Sequence[Command], peer: Peer) -> None:
        """As a connection does with what it reads."""
        while commands:
            try:
                count = len(self.admission.answer_first(commands, peer, self.answer))
            except SystemBusy:
                self.refused += 1
                count = 1
            commands = commands[count:]


@given(
    st.lists(
        st.tuples(
            st.floats(0.0, 2.0), st.text("ab", max_size=64), st.integers(0, 300), st.integers(1, 64)
        ),
        max_size=25,
    )
)
def test_exactly_what_is_admitted_is_counted(
    reads: list[tuple[float, str, int, int]],
) -> None:
    server, peer, sent = Server(), InnerPeer("10.0.0.1:1"), 0
    for pause, topics, size, takes in reads:
        server.now += pause
        server.takes = takes
        sent += len(topics)
        server.receive(sends(topics, size), peer)
        stored = server.stored
        assert len(stored) + server.refused == sent
        assert len(stored) <= 80 + 50 * server.now + 1e-6
        assert sum(len(each.body) for each in stored) <= 9000 + 5000 * server.now + 1e-6
        to_b = [each for each in stored if each.read(SendMessageV2).topic == "b"]
        assert len(to_b) <= 30 + 20 * server.now + 1e-6


@given(st.integers(1, 64), st.integers(1, 80))
def test_nothing_is_refused_that_the_limit_allows(takes: int, count: int) -> None:
    server, peer = Server(), InnerPeer("10.0.0.1:1")
    server.takes = takes
    server.receive(sends("a" * count, 1), peer)
    assert (len(server.stored), server.refused) == (count, 0)


def test_without_rules_everything_passes_at_once() -> None:
    server, peer = Server(), InnerPeer("10.0.0.1:1")
    server.takes = 64
    server.receive(sends("b" * 60, 1), peer)
    assert server.refused
    server.rules = ()
    server.stored.clear()
    server.receive(sends("b" * 200, 1), peer)
    assert len(server.stored) == 200
    assert not server.admission.is_on
