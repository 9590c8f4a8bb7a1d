"""Static topics at a name server."""

from __future__ import annotations

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
