"""The clients that a proxy knows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sprocket.proxy.clients.served_clients import CLIENT_ID, ServedClient, ServedClients, id_in
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.statuses import CallRefused
from sprocket.testing.loop import simulate
from tests.proxy.world import consumer_settings, producer_settings


class Sink:
    """A stream that nobody reads."""

    def send(self, message: bytes) -> None:
        pass


class Known:
    """Some clients, and those that are gone."""

    def __init__(self, **limits: int) -> None:
        self.gone: list[str] = []
        self.clients = ServedClients(
            clients_max=limits.get("clients_max", 100),
            connection_max=limits.get("connection_max", 100),
            settings_bytes_max=limits.get("settings_bytes_max", 1 << 20),
            expiry_seconds=60,
            receive=lambda client, command: None,
            on_gone=lambda client: self.gone.append(client.client_id),
        )

    def add(
        self, name: str, settings: pb.Settings, *, has_stream: bool = True, address: str = "a:1"
    ) -> ServedClient:
        client = self.clients.known({CLIENT_ID: name}, address, "")
        self.clients.accept(client, settings, 1)
        client.attach(Sink() if has_stream else None)
        return client


def play(test: Callable[[], None]) -> None:
    async def main() -> None:
        test()

    simulate(lambda network: main())


def test_those_that_can_be_asked_take_turns() -> None:
    def test() -> None:
        known = Known()
        for name in ("a", "b", "c"):
            known.add(name, producer_settings("t", "u"), has_stream=name != "b")
        known.add("d", consumer_settings("g"))

        def names(topic: str) -> list[str]:
            found = [known.clients.next_producer(topic) for _ in range(4)]
            return [each.client_id for each in found if each is not None]

        assert names("t") == ["a", "c", "a", "c"]
        assert names("u") == ["a", "c", "a", "c"]
        assert names("g") == names("nothing") == []
        consumer = known.clients.next_consumer("g")
        assert consumer is not None
        assert consumer.client_id == "d"
        assert known.clients.next_consumer("t") is None

    play(test)


def test_a_client_is_found_by_what_it_is_in_now() -> None:
    def test() -> None:
        known = Known()
        client = known.add("a", producer_settings("t", "u"))
        first = client.revision
        known.add("a", producer_settings("t", "u"))
        assert client.revision == first
        known.add("a", producer_settings("u", "v"))
        assert client.revision > first
        assert known.clients.next_producer("t") is None
        assert known.clients.next_producer("v") is client
        known.add("a", consumer_settings("g"))
        assert known.clients.next_producer("v") is None
        known.clients.forget(client)
        assert known.clients.next_consumer("g") is None
        assert known.gone == ["a"]

    play(test)


def test_one_that_came_back_under_the_same_id_has_another_revision() -> None:
    def test() -> None:
        known = Known()
        first = known.add("a", consumer_settings())
        known.clients.forget(first)
        second = known.add("a", consumer_settings())
        assert second is not first
        assert second.revision != first.revision
        known.clients.forget(first)
        assert known.clients.find("a") is second

    play(test)


def test_their_number_and_the_size_of_their_settings_are_bounded() -> None:
    def test() -> None:
        known = Known(clients_max=2, settings_bytes_max=400)
        known.add("a", producer_settings())
        known.add("b", producer_settings())
        with pytest.raises(CallRefused):
            known.add("c", producer_settings())
        with pytest.raises(CallRefused):
            known.add("a", producer_settings(*("long" * 20 for _ in range(10))))
        assert known.clients.next_producer("orders") is not None

    play(test)


def test_one_connection_cannot_take_the_places_of_all() -> None:
    def test() -> None:
        known = Known(connection_max=2)
        first = known.add("a", producer_settings())
        known.add("b", producer_settings())
        known.add("a", producer_settings())  # it is known already
        with pytest.raises(CallRefused, match="come by this connection"):
            known.add("c", producer_settings())
        known.add("c", producer_settings(), address="b:2")
        known.clients.forget(first)
        known.clients.forget(first)
        known.add("d", producer_settings())
        with pytest.raises(CallRefused):
            known.add("e", producer_settings())

    play(test)


@pytest.mark.parametrize("name", ["", "  ", "x" * 513])
def test_an_id_must_be_one(name: str) -> None:
    with pytest.raises(CallRefused):
        id_in({CLIENT_ID: name})
