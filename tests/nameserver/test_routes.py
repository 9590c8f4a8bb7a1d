"""The table of routes."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sprocket.base.errors import SystemFailure
from sprocket.nameserver.instances import BrokerInfo, BrokerQueues, SmallestChange, Version
from sprocket.nameserver.routes import RouteTable, Superseded
from tests.support import calls_of

FOUR = BrokerQueues(4, 4, 6)
TWO_TOPICS = {"orders": FOUR, "TBW102": BrokerQueues(8, 8, 7)}


def said(broker: str = "a", number: int = 0, port: int = 1, **more: Any) -> BrokerInfo:
    more.setdefault("topics", TWO_TOPICS)
    return BrokerInfo(
        "cluster", broker, number, f"10.0.0.1:{port}", f"10.0.0.1:{port + 1000}", **more
    )


def test_a_registered_broker_is_on_the_route_of_its_topics() -> None:
    routes = RouteTable()
    routes.register(said(), "link", 0)
    route = routes.route_of("orders")
    assert route is not None
    assert route.queues == {"a": FOUR}
    assert [broker.addresses for broker in route.brokers] == [{0: "10.0.0.1:1"}]
    assert routes.route_of("unknown") is None


def test_the_first_registration_may_have_one_topic() -> None:
    routes = RouteTable()
    routes.register(said(topics={"orders": FOUR}), "link", 0)
    assert routes.topics() == ["orders"]


def test_every_name_server_lists_the_same_order() -> None:
    one, two = RouteTable(), RouteTable()
    brokers = [said("b", 0, 2), said("a", 1, 3), said("a", 0, 1), said("c", 0, 4)]
    for registration in brokers:
        one.register(registration, registration.address, 0)
    for registration in reversed(brokers):
        two.register(registration, registration.address, 0)
    first, second = one.route_of("orders"), two.route_of("orders")
    assert first is not None
    assert second is not None
    assert list(first.queues.items()) == list(second.queues.items())
    assert [b.name for b in first.brokers] == [b.name for b in second.brokers] == ["a", "b", "c"]
    assert list(first.brokers[0].addresses) == list(second.brokers[0].addresses) == [0, 1]
    assert one.clusters() == two.clusters() == {"cluster": ["a", "b", "c"]}


def test_a_slave_is_told_its_master() -> None:
    routes = RouteTable()
    assert routes.register(said(number=1, port=2), "slave", 0).number == 1
    routes.register(said(), "master", 0)
    master = routes.register(said(number=1, port=2), "slave", 0)
    assert (master.address, master.ha_address) == ("10.0.0.1:1", "10.0.0.1:1001")


def test_a_slave_brings_no_topics() -> None:
    routes = RouteTable()
    routes.register(said(number=1), "slave", 0)
    assert routes.topics() == []


def test_closing_the_connection_takes_the_broker_off() -> None:
    routes = RouteTable()
    routes.register(said(), "link", 0)
    assert [gone.address for gone in routes.closed("link")] == ["10.0.0.1:1"]
    assert routes.route_of("orders") is None
    assert routes.clusters() == {}


def test_a_second_registration_survives_the_closing_of_the_first_connection() -> None:
    routes = RouteTable()
    routes.register(said(), "first", 0)
    routes.register(said(), "second", 1)
    assert routes.closed("first") == []
    assert routes.route_of("orders") is not None


def test_unregistering_a_slave_with_the_master_s_address_changes_nothing() -> None:
    routes = RouteTable()
    routes.register(said(), "master", 0)
    routes.register(said(number=1, port=2), "slave", 0)
    assert not routes.unregister("a", 1, "10.0.0.1:1")
    assert not routes.unregister("b", 0, "10.0.0.1:1")
    assert routes.unregister("a", 1, "10.0.0.1:2")
    broker = routes.broker("a")
    assert broker is not None
    assert broker.addresses == {0: "10.0.0.1:1"}


def test_unregistering_over_a_connection_that_another_has_replaced_changes_nothing() -> None:
    routes = RouteTable()
    routes.register(said(), "old", 0)
    routes.register(said(), "new", 1)
    assert not routes.unregister("a", 0, "10.0.0.1:1", connection="old")
    assert routes.route_of("orders") is not None
    assert routes.unregister("a", 0, "10.0.0.1:1", connection="new")
    assert routes.route_of("orders") is None


def test_topics_stay_while_a_slave_is_there() -> None:
    routes = RouteTable()
    routes.register(said(), "master", 0)
    routes.register(said(number=1, port=2), "slave", 0)
    routes.closed("master")
    route = routes.route_of("orders")
    assert route is not None
    assert route.brokers[0].addresses == {1: "10.0.0.1:2"}


def test_silence_takes_a_broker_off_and_a_sign_of_life_keeps_it() -> None:
    routes = RouteTable(expiry_ms=120_000)
    routes.register(said("a"), "a", 0)
    routes.register(said("b", port=2), "b", 0)
    routes.register(said("c", port=3, expiry_ms=10_000), "c", 0)
    assert [gone.broker for gone in routes.expire(10_001)] == ["c"]
    assert routes.heartbeat("a", None, "10.0.0.1:1", 100_000) is not None
    assert routes.heartbeat("a", None, "10.0.0.1:9", 100_000) is None
    assert routes.expire(120_000) == []
    assert [gone.broker for gone in routes.expire(120_001)] == ["b"]
    assert routes.clusters() == {"cluster": ["a"]}


@pytest.mark.parametrize(("asked", "given"), [(0, 100), (-5, 100), (1 << 62, 86_400_000)])
def test_the_silence_a_broker_may_ask_for_is_bounded(asked: int, given: int) -> None:
    assert RouteTable().register(said(expiry_ms=asked), "a", 0).expiry_ms == given


def test_a_slave_that_became_master_is_there_once() -> None:
    routes = RouteTable()
    routes.register(said(number=1, port=2), "slave", 0)
    routes.register(said(number=0, port=2), "slave", 1)
    broker = routes.broker("a")
    assert broker is not None
    assert broker.addresses == {0: "10.0.0.1:2"}


def test_a_master_with_a_new_address_replaces_the_old() -> None:
    routes = RouteTable()
    routes.register(said(port=1), "old", 0)
    routes.register(said(port=9), "new", 1)
    routes.closed("old")
    broker = routes.broker("a")
    assert broker is not None
    assert broker.addresses == {0: "10.0.0.1:9"}


def addresses(routes: RouteTable) -> dict[int, str]:
    broker = routes.broker("a")
    assert broker is not None
    return broker.addresses


def test_a_number_moves_to_another_address_in_a_newer_epoch_and_never_back() -> None:
    routes = RouteTable(expiry_ms=1_000)
    old, new = said(port=1, version=Version(3, 1, 1)), said(port=2, version=Version(4, 1, 1))
    routes.register(old, "old", 0)
    routes.register(said(number=2, port=2, version=Version(3, 1, 1)), "new", 0)
    routes.register(new, "new", 10)
    assert addresses(routes) == {0: "10.0.0.1:2"}
    with pytest.raises(Superseded, match=r"10\.0\.0\.1:2 is a 0"):
        routes.register(old, "old", 20)
    assert not routes.unregister("a", 0, "10.0.0.1:1")
    assert routes.closed("old") == []
    assert addresses(routes) == {0: "10.0.0.1:2"}
    routes.register(said(number=1, port=1, version=Version(4, 1, 1)), "old", 30)
    assert addresses(routes) == {0: "10.0.0.1:2", 1: "10.0.0.1:1"}
    routes.expire(5_000)
    routes.register(old, "old", 5_000)
    assert addresses(routes) == {0: "10.0.0.1:1"}, "nobody else is there"
    routes.validate()


def test_a_master_at_another_address_brings_its_topics_though_the_version_is_known() -> None:
    routes = RouteTable()
    version = Version(0, 1, 1)
    routes.register(said(port=1, version=version), "old", 0)
    routes.set_permission("a", lambda old: 4)
    routes.register(said(port=2, version=version), "new", 1)
    assert permission(routes, "orders") == 6


def test_a_slave_of_5x_brings_topics_while_there_is_no_master() -> None:
    routes = RouteTable()
    routes.register(said(number=2, port=3, acting_master=False), "two", 0)
    routes.register(said(number=1, port=2, acting_master=False, topics={"t": FOUR}), "one", 0)
    assert routes.topics() == ["TBW102", "orders", "t"]
    assert permission(routes, "t") == 6
    less = {"orders": BrokerQueues(1, 1, 6)}
    routes.register(said(number=1, port=2, acting_master=False, topics=less), "one", 1)
    assert routes.route_of("orders").queues["a"] == FOUR  # type: ignore[union-attr]
    routes.register(said(), "master", 2)
    routes.register(said(number=1, port=2, acting_master=False, topics={"x": FOUR}), "one", 3)
    assert "x" not in routes.topics()


def test_a_broker_whose_slave_acts_as_master_can_only_be_read() -> None:
    changes: list[SmallestChange] = []
    routes = RouteTable(on_smallest=changes.append)
    routes.register(said(acting_master=True), "master", 0)
    for number in (2, 1):
        topics = {**TWO_TOPICS, "only here": FOUR}
        one = said(number=number, port=number + 1, acting_master=True, topics=topics)
        routes.register(one, f"slave {number}", 0)
    assert changes == []
    routes.closed("master")
    assert permission(routes, "orders") == 4
    slaves = ("10.0.0.1:2", "10.0.0.1:3")
    assert changes.pop() == SmallestChange("a", 1, slaves[0], None, "10.0.0.1:1", slaves)
    routes.register(one, "slave 1", 1)
    assert permission(routes, "only here") == 4
    routes.register(said(acting_master=True), "master", 2)
    assert permission(routes, "orders") == 6
    assert changes.pop() == SmallestChange("a", 0, "10.0.0.1:1", "10.0.0.1:1001", None, slaves)
    routes.closed("slave 2")
    assert changes == []


def test_an_operator_s_permission_stands_until_the_broker_s_topics_change() -> None:
    routes = RouteTable()
    routes.register(said(version=Version(0, 1, 1)), "link", 0)
    assert routes.set_permission("a", lambda old: old & ~2) == 2
    routes.register(said(version=Version(0, 1, 1)), "link", 1)
    assert permission(routes, "orders") == 4
    routes.register(said(version=Version(0, 1, 2)), "link", 2)
    assert permission(routes, "orders") == 6
    assert routes.set_permission("nobody", lambda old: 0) == 0


def permission(routes: RouteTable, topic: str) -> int:
    route = routes.route_of(topic)
    assert route is not None
    return route.queues["a"].permission


def test_a_missed_change_comes_with_the_next_whole_table() -> None:
    routes = RouteTable()
    routes.register(said(version=Version(0, 1, 1)), "link", 0)
    routes.register(said(version=Version(0, 1, 3), topics={"third": FOUR}), "link", 1)
    whole = {**TWO_TOPICS, "second": FOUR, "third": FOUR}
    routes.register(said(version=Version(0, 1, 3), topics=whole), "link", 2)
    assert routes.topics() == sorted(whole)


def test_a_master_that_comes_back_with_a_whole_table_loses_topics_it_no_longer_has() -> None:
    routes = RouteTable()
    routes.register(said(), "master", 0)
    routes.register(said(number=1, port=2), "slave", 0)
    routes.closed("master")
    routes.register(said(topics={"orders": FOUR, "other": FOUR}), "master", 1)
    assert routes.topics() == ["orders", "other"]


def test_a_master_that_comes_back_with_one_topic_keeps_the_others() -> None:
    routes = RouteTable()
    routes.register(said(), "master", 0)
    routes.register(said(number=1, port=2), "slave", 0)
    routes.closed("master")
    routes.register(said(topics={"other": FOUR}), "master", 1)
    assert routes.topics() == ["TBW102", "orders", "other"]


def test_absent_topics_are_deleted_if_that_is_wanted() -> None:
    routes = RouteTable(absent_are_deleted=True)
    routes.register(said(), "link", 0)
    routes.register(said(topics={"orders": FOUR}), "link", 1)
    assert routes.topics() == ["orders"]


def test_topics_are_listed_by_cluster_and_unit() -> None:
    routes = RouteTable()
    topics = {"plain": FOUR, "unit": BrokerQueues(1, 1, 6, 1), "half": BrokerQueues(1, 1, 6, 2)}
    routes.register(said(topics=topics), "link", 0)
    assert routes.topics_of_cluster("cluster") == ["half", "plain", "unit"]
    assert routes.topics_of_cluster("other") == []
    assert routes.topics_of_units(is_unit=True, is_subscribed=None) == ["unit"]
    assert routes.topics_of_units(is_unit=False, is_subscribed=True) == ["half"]


def test_a_topic_is_deleted_everywhere_or_in_one_cluster() -> None:
    routes = RouteTable()
    routes.register(said("a"), "a", 0)
    routes.register(BrokerInfo("second", "b", 0, "10.0.0.1:2", topics=TWO_TOPICS), "b", 0)
    routes.delete_topic("orders", "second")
    route = routes.route_of("orders")
    assert route is not None
    assert list(route.queues) == ["a"]
    routes.delete_topic("orders")
    routes.delete_topic("orders")
    assert routes.route_of("orders") is None


def test_the_table_is_bounded() -> None:
    routes = RouteTable(topics_max=2, brokers_max=1)
    routes.register(said(), "a", 0)
    with pytest.raises(SystemFailure, match="no more are taken"):
        routes.register(said("b", port=2), "b", 0)
    with pytest.raises(SystemFailure, match="no more than 2 topics"):
        routes.register(said(topics={"third": FOUR, "orders": FOUR}), "a", 0)
    assert routes.topics() == ["TBW102", "orders"]
    routes.register(said(), "a", 1)


def test_what_comes_and_goes_visits_no_topics_of_other_brokers_and_no_other_connections() -> None:
    routes = RouteTable()
    for number in range(1_000):
        topics = {f"T{number}": FOUR, f"U{number}": FOUR}
        routes.register(said(f"b{number}", port=number, topics=topics), f"x{number}", 0)
    assert calls_of(lambda: routes.closed("a client")) < 50
    assert calls_of(lambda: routes.closed("x5")) < 100
    assert calls_of(lambda: routes.set_permission("b6", lambda old: 4)) < 50
    assert routes.route_of("T5") is None
    assert routes.broker("b5") is None
    assert routes.broker("b6") is not None
    routes.validate()


_brokers = some.sampled_from(["a", "b"])
_numbers = some.integers(0, 2)
_ports = some.integers(1, 4)
_links = some.sampled_from(["x", "y", "z"])
_topics = some.dictionaries(some.sampled_from(["t", "u", "v"]), some.just(FOUR), max_size=3)
_more = some.fixed_dictionaries(
    {
        "acting_master": some.sampled_from([None, False, True]),
        "version": some.builds(Version, some.integers(0, 2), some.just(1), some.integers(1, 3)),
    }
)
_events = some.one_of(
    some.tuples(some.just("register"), _brokers, _numbers, _ports, _links, _topics, _more),
    some.tuples(some.just("unregister"), _brokers, _numbers, _ports),
    some.tuples(some.just("closed"), _links),
    some.tuples(some.just("wait"), some.integers(0, 200)),
    some.tuples(some.just("delete"), some.sampled_from(["t", "u"])),
)


@given(some.lists(_events, max_size=30))
def test_the_table_stays_whole_whatever_happens(events: list[tuple[Any, ...]]) -> None:
    routes = RouteTable(expiry_ms=1_000)
    now = 0
    for kind, *values in events:
        match kind:
            case "register":
                broker, number, port, link, topics, more = values
                info = said(broker, number, port, topics=topics, **more)
                with contextlib.suppress(Superseded):
                    routes.register(info, link, now)
            case "unregister":
                broker, number, port = values
                routes.unregister(broker, number, f"10.0.0.1:{port}")
            case "closed":
                routes.closed(values[0])
                assert all(i.connection != values[0] for i in routes.instances())
            case "wait":
                now += values[0] * 10
                routes.expire(now)
                assert all(i.last_ms + i.expiry_ms >= now for i in routes.instances())
            case "delete":
                routes.delete_topic(values[0])
        routes.validate()
