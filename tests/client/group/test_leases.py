"""Leases on thousands of queues are asked for in requests of bounded size."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from sprocket.base.errors import ConnectFailed
from sprocket.client.group.leases import Leases
from sprocket.client.session.session import Session
from sprocket.message.queue import QueueId
from sprocket.protocol.bodies import LockBody, LockedBody
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.lock import LockQueues
from sprocket.testing.loop import simulate


class _Broker:
    """Grants what it is asked for, and remembers how many queues each request had."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, int]] = []
        self.silent = ""

    async def ask(self, address: str, header: Header, *, body: bytes, deadline: Any) -> Command:
        asked = LockBody.decode(body).mq_set
        kind = "lock" if isinstance(header, LockQueues) else "unlock"
        self.requests.append((address, kind, len(asked)))
        if address == self.silent:
            raise ConnectFailed("silent")
        return Command(code=0, body=LockedBody(locked=asked).encode())


def _leases(broker: _Broker) -> Leases:
    reports = SimpleNamespace(succeeded=lambda *_: None, refused=lambda *_: None)
    session = SimpleNamespace(
        client_id="c",
        pool=broker,
        address=lambda name: name,
        reachability=reports,
        search=SimpleNamespace(failed=lambda *_: None),
    )
    return Leases(cast(Session, session), "g", 3_000)


def test_many_queues_are_leased_and_given_back_in_several_requests() -> None:
    async def main() -> None:
        broker = _Broker()
        leases = _leases(broker)
        queues = [QueueId("T", "a", number) for number in range(2_500)]
        answers = await leases.take(queues)
        assert list(answers) == queues
        assert None not in answers.values()
        await leases.give_back_all(but=queues[:500])
        assert [each[1:] for each in broker.requests] == [
            ("lock", 1_000),
            ("lock", 1_000),
            ("lock", 500),
            ("unlock", 1_000),
            ("unlock", 1_000),
        ]

    simulate(lambda network: main())


def test_a_broker_that_does_not_answer_is_asked_once() -> None:
    async def main() -> None:
        broker = _Broker()
        broker.silent = "a"
        leases = _leases(broker)
        queues = [QueueId("T", name, number) for name in "ab" for number in range(1_500)]
        answers = await leases.take(queues)
        assert list(answers) == queues[1_500:]
        assert [each[0] for each in broker.requests] == ["a", "b", "b"]
        await leases.give_back(queues)
        assert [each[0] for each in broker.requests[3:]] == ["a", "b", "b"]

    simulate(lambda network: main())
