"""Static topics at a name server."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.errors import SystemFailure
from sprocket.nameserver.instances import BrokerInfo, BrokerQueues, Version
from sprocket.nameserver.routes import RouteTable
from sprocket.nameserver.static_topics import mappings_in
from sprocket.protocol.bodies import MappingInfo

TWO = {"T": BrokerQueues(1, 1, 6), "other": BrokerQueues(1, 1, 6)}


def mapped(broker: str, epoch: int = 1, **ids: int) -> dict[str, MappingInfo]:
    numbers = {int(name[1:]): queue for name, queue in ids.items()}
    info = MappingInfo(bname=broker, curr_id_map=numbers, epoch=epoch, topic="T", total_queues=2)
    return {"T": info}


def said(broker: str, counter: int, mappings: dict[str, MappingInfo]) -> BrokerInfo:
    return BrokerInfo(
        "c", broker, 0, f"10.0.0.1:{ord(broker)}", topics=TWO, mappings=mappings,
        version=Version(0, 0, counter),
    )  # fmt: skip


def shown(routes: RouteTable) -> dict[str, dict[int, int]] | None:
    route = routes.route_of("T")
    assert route is not None
    if route.mappings is None:
        return None
    return {name: info.curr_id_map for name, info in route.mappings.items()}


def test_a_route_has_the_mappings_of_its_brokers() -> None:
    routes = RouteTable()
    routes.register(said("b", 1, mapped("b", q1=0)), "b", 0)
    routes.register(said("a", 1, mapped("a", q0=0)), "a", 0)
    assert shown(routes) == {"a": {0: 0}, "b": {1: 0}}
    routes.register(said("a", 2, mapped("a", epoch=2, q0=0, q1=1)), "a", 1)
    assert shown(routes) == {"a": {0: 0, 1: 1}, "b": {1: 0}}
    routes.validate()


def test_the_mapping_of_a_broker_that_is_gone_stays_while_the_topic_does() -> None:
    routes = RouteTable()
    routes.register(said("a", 1, mapped("a", q0=0)), "a", 0)
    routes.register(said("b", 1, mapped("b", q1=0)), "b", 0)
    routes.closed("b")
    assert shown(routes) == {"a": {0: 0}, "b": {1: 0}}
    routes.closed("a")
    assert routes.route_of("T") is None
    routes.validate()
    routes.register(said("a", 1, {}), "a", 0)
    assert shown(routes) is None


def test_a_topic_that_is_made_again_as_a_usual_one_has_no_mapping() -> None:
    routes = RouteTable()
    routes.register(said("a", 1, mapped("a", q0=0)), "a", 0)
    routes.register(said("a", 2, {}), "a", 1)
    assert shown(routes) is None
    routes.register(said("a", 3, mapped("a", q0=0)), "a", 2)
    routes.delete_topic("T")
    routes.register(said("a", 4, {}), "a", 3)
    assert shown(routes) is None


def test_mappings_that_no_client_could_use_are_left_out() -> None:
    right = mapped("a", q0=0)["T"]
    received = {
        "T": {"currIdMap": {"0": 0}, "epoch": 1, "totalQueues": 2, "topic": "T"},
        "text": "text",
        "numbers": {"currIdMap": {"7": 0}, "totalQueues": 2},
        "many": {"totalQueues": 1_000_000},
        "scope": {"totalQueues": 1, "scope": "x" * 256},
    }
    assert mappings_in(received, "a") == {"T": right}
    assert mappings_in(None, "a") == {}


def test_brokers_that_are_gone_make_room_and_those_that_are_here_keep_theirs() -> None:
    """Who registers under ever new names, and leaves, takes no more memory."""
    routes = RouteTable(static_entries_max=20)
    routes.register(said("a", 1, mapped("a", q0=0)), "a", 0)
    for number in range(200):
        name = chr(0x100 + number)
        routes.register(said(name, 1, mapped(name, q0=0, q1=1)), name, 0)
        routes.closed(name)
        routes.validate()
        assert (shown(routes) or {})["a"] == {0: 0}


def test_no_more_queues_are_taken_than_there_may_be() -> None:
    routes = RouteTable(static_entries_max=8)
    for broker in "ab":
        routes.register(said(broker, 1, mapped(broker, q0=0, q1=1)), broker, 0)
    with pytest.raises(SystemFailure, match="8 queues"):
        routes.register(said("c", 1, mapped("c", q0=0, q1=1)), "c", 0)
    assert routes.broker("c") is None
    routes.register(said("a", 2, mapped("a", epoch=2, q0=1, q1=0)), "a", 1)
    routes.register(said("b", 2, {}), "b", 1)
    routes.register(said("c", 1, mapped("c", q0=0, q1=1)), "c", 2)
    assert set(shown(routes) or {}) == {"a", "c"}
    routes.validate()


HISTORIES = st.lists(
    st.tuples(
        st.sampled_from("abcd"),
        st.sampled_from(["join", "leave", "slave"]),
        st.integers(0, 3),
        st.sampled_from([("T",), ("T", "other"), ("other",)]),
    ),
    max_size=40,
)


@given(HISTORIES)
def test_the_entries_are_counted_whatever_brokers_do(
    history: list[tuple[str, str, int, tuple[str, ...]]],
) -> None:
    routes = RouteTable(static_entries_max=9)
    for counter, (broker, what, queues, topics) in enumerate(history):
        if what == "leave":
            routes.closed(broker)
        else:
            numbers = {f"q{each}": each for each in range(queues)}
            mappings = {topic: mapped(broker, **numbers)["T"] for topic in topics[1:] or topics}
            known = {topic: TWO[topic] for topic in topics}
            info = replace(said(broker, counter, mappings), topics=known)
            if what == "slave":
                info = replace(info, number=1, acting_master=True)
            with contextlib.suppress(SystemFailure):
                routes.register(info, broker, counter)
        routes.validate()
