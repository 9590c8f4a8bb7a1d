"""Requests to a name server, without a socket."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sprocket.message.record import body_crc
from sprocket.nameserver.config import NameServerConfig
from sprocket.nameserver.configuration import Configuration
from sprocket.nameserver.dispatch import NameServerDispatch
from sprocket.nameserver.routes import RouteTable
from sprocket.nameserver.settings import KeyValueSettings
from sprocket.protocol import registration
from sprocket.protocol.bodies import (
    BrokerMembersBody,
    ClusterInfo,
    DataVersion,
    KvTable,
    RegisterBody,
    Route,
    TopicConfig,
    TopicList,
    TopicTable,
)
from sprocket.protocol.command import Command, Header, Reply
from sprocket.protocol.connection import Connection
from sprocket.protocol.requests import route
from sprocket.remoting.transport import Peer

GOLDEN = Path(__file__).parent.parent / "golden" / "frames"


class Link(NamedTuple):
    """Stands for a connection."""

    address: str


class Desk:
    """A name server's answers, its clock in hand."""

    def __init__(self, config: NameServerConfig | None = None) -> None:
        self.now_ms = 0
        self.saves = 0
        self.disk_is_broken = False
        self.routes = RouteTable()
        self.settings = KeyValueSettings()
        self.answer = NameServerDispatch(
            self.routes,
            self.settings,
            configuration=Configuration(config or NameServerConfig()),
            now_ms=lambda: self.now_ms,
            save=self.save,
        )

    def save(self) -> None:
        if self.disk_is_broken:
            raise OSError("no room")
        self.saves += 1

    def take(self, command: Command, link: str = "link") -> Reply:
        return self.answer(command, cast(Peer, Link(link)))

    def ask(self, header: Header, body: bytes = b"", *, link: str = "link") -> Reply:
        return self.take(Command.request(header, body=body), link)

    def register(
        self, broker: str = "a", number: int = 0, *topics: str, port: int = 1, **more: Any
    ) -> Reply:
        body = registration.encode(
            RegisterBody(topics=table(*topics)), compressed=more.get("compressed", False)
        )
        header = route.RegisterBroker(
            broker_name=broker,
            broker_addr=f"10.0.0.1:{port}",
            cluster_name="cluster",
            ha_server_addr=f"10.0.0.1:{port + 1000}",
            broker_id=number,
            body_crc32=body_crc(body),
        )
        for name, value in more.items():
            setattr(header, name, value)
        return self.ask(header, body, link=f"{broker}{number}")


def table(*topics: str) -> TopicTable:
    return TopicTable(
        DataVersion(counter=1, timestamp=5),
        topic_config_table={name: TopicConfig(topic_name=name) for name in topics},
    )


def recorded(name: str) -> Iterator[dict[str, Any]]:
    """The name server's frames of a recording, decoded."""
    with gzip.open(GOLDEN / f"{name}.jsonl.gz", "rt") as lines:
        for line in lines:
            frame = json.loads(line)
            if frame["link"] == "ns" and frame["dir"] in ("request", "response", "eof"):
                if frame.get("hex"):
                    (frame["command"],) = Connection().receive(bytes.fromhex(frame["hex"]))
                yield frame


#: Steps where this name server does better than Java's, see the tests below.
BETTER = (
    "register with a compressed body",  # that body was not what Java's brokers send
    "N4: unregister a slave",
    "N4: route then",
    "route after the slave connection closed",  # Java had forgotten its cluster, and kept it
    "route after the connection closed",
    "cluster info",  # a broker is listed in its own cluster only
)


def test_java_s_answers_are_given() -> None:
    desk = Desk()
    compared = 0
    for name in ("5.3.3-json/broker-start", "5.3.3-json/route"):
        asked: dict[tuple[int, int], Command] = {}
        for frame in recorded(name):
            command = frame.get("command")
            if command is None:
                continue
            key = (frame["conn"], command.opaque)
            if frame["dir"] == "request":
                asked[key] = command
            elif key in asked:
                reply = desk.take(asked.pop(key), f"{name} {frame['conn']}")
                assert reply.code == command.code, frame["step"]
                assert values(cast(bytes, reply.body)) == values(bytes(command.body))
                compared += 1
    assert compared == 8


def values(body: bytes) -> Any:
    """A body for comparing; bare numeric keys are quoted."""
    return json.loads(body.replace(b"{0:", b'{"0":').replace(b",1:", b',"1":')) if body else None


def test_java_s_registrations_are_answered_as_java_does_or_better() -> None:
    desk = Desk()
    asked: dict[int, tuple[Command, str]] = {}
    compared = 0
    for frame in recorded("probe/registration"):
        link = str(frame["conn"])
        if frame["dir"] == "eof":
            desk.routes.closed(Link(link))
            continue
        command = frame["command"]
        if frame["dir"] == "request":
            asked[command.opaque] = command, link
            continue
        reply = desk.take(*asked.pop(command.opaque))
        if frame["step"].startswith(BETTER):
            continue
        assert reply.code == command.code, frame["step"]
        fields = reply.header.to_fields() if reply.header else {}
        assert fields == dict(command.fields), frame["step"]
        compared += 1
    assert compared > 5


def test_a_route_is_standard_json_for_who_reads_it_and_bare_for_old_clients() -> None:
    desk = Desk()
    desk.register("a", 0, "orders")
    ask = route.RouteOfTopic(topic="orders")
    command = Command.request(ask)
    bodies = {}
    for version in (36, 400, 401, 479):
        command.version = version
        bodies[version] = bytes(cast(bytes, desk.take(command).body))
    assert b'{0:"10.0.0.1:1"}' in bodies[36]
    assert bodies[400] == bodies[36]
    assert b'{"0":"10.0.0.1:1"}' in bodies[401]
    assert bodies[479] == bodies[401]
    command = Command.request(route.RouteOfTopic(topic="orders", accept_standard_json_only=True))
    command.version = 36
    assert desk.take(command).body == bodies[401]
    assert Route.decode(bodies[36]) == Route.decode(bodies[401])


def test_the_route_of_an_unknown_topic_is_not_found() -> None:
    desk = Desk()
    for topic in ("nothing", None):
        reply = desk.ask(route.RouteOfTopic(topic=topic))
        assert reply.code == 17
        assert "No topic route info" in (reply.remark or "")


def test_cluster_info_lists_brokers_in_their_cluster() -> None:
    desk = Desk()
    desk.register("b", 0, "orders", port=2)
    desk.register("a", 0, "orders")
    desk.register("a", 1, port=3)
    body = bytes(cast(bytes, desk.ask(route.ClusterOf()).body))
    assert b'{0:"10.0.0.1:1",1:"10.0.0.1:3"}' in body
    info = ClusterInfo.decode(body)
    assert info.cluster_addr_table == {"cluster": ["a", "b"]}
    assert list(info.broker_addr_table) == ["a", "b"]


@pytest.mark.parametrize("compressed", [False, True])
def test_both_forms_of_a_registration_are_read(compressed: bool) -> None:
    desk = Desk()
    assert desk.register("a", 0, "one", "two", compressed=compressed).code == 0
    assert desk.routes.topics() == ["one", "two"]


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"body_crc32": 1}, 1),
        ({"broker_name": ""}, 29),
        ({"broker_name": "x" * 256}, 29),
        ({"cluster_name": ""}, 29),
        ({"broker_addr": "nowhere"}, 29),
        ({"broker_addr": ""}, 29),
        ({"ha_server_addr": "x" * 256}, 29),
    ],
)
def test_a_wrong_registration_is_refused(wrong: dict[str, Any], code: int) -> None:
    desk = Desk()
    assert desk.register("a", 0, "orders", **wrong).code == code
    assert desk.routes.brokers() == []


def test_a_topic_that_no_client_could_use_is_left_out() -> None:
    desk = Desk()
    topics = table("right")
    topics.topic_config_table["huge"] = TopicConfig(topic_name="huge", read_queue_nums=1 << 30)
    topics.topic_config_table["x" * 256] = TopicConfig()
    body = RegisterBody(topics=topics).encode()
    header = route.RegisterBroker(
        broker_name="a", broker_addr="10.0.0.1:1", cluster_name="c", broker_id=0
    )
    assert desk.ask(header, body).code == 0
    assert desk.routes.topics() == ["right"]


def test_a_broker_with_thousands_of_such_topics_does_not_fill_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    topics = table()
    for number in range(5_000):
        topics.topic_config_table[f"t{number}"] = TopicConfig(read_queue_nums=-1)
    header = route.RegisterBroker(
        broker_name="a", broker_addr="10.0.0.1:1", cluster_name="c", broker_id=0
    )
    assert Desk().ask(header, RegisterBody(topics=topics).encode()).code == 0
    assert 0 < len([each for each in caplog.records if "is left out" in each.message]) <= 20


def test_a_slave_is_told_its_master_and_all_are_told_the_order_configuration() -> None:
    desk = Desk()
    desk.settings.put("ORDER_TOPIC_CONFIG", "orders", "a:4")
    desk.register("a", 0, "orders")
    reply = desk.register("a", 1, port=2)
    assert reply.header == route.RegisterBrokerReply(
        ha_server_addr="10.0.0.1:1001", master_addr="10.0.0.1:1"
    )
    assert KvTable.decode(cast(bytes, reply.body)).table == {"orders": "a:4"}


def test_the_order_configuration_is_on_the_route_if_wanted() -> None:
    for is_wanted in (False, True):
        desk = Desk(NameServerConfig(order_conf_in_routes=is_wanted))
        desk.settings.put("ORDER_TOPIC_CONFIG", "orders", "a:4")
        desk.register("a", 0, "orders")
        found = Route.decode(cast(bytes, desk.ask(route.RouteOfTopic(topic="orders")).body))
        assert found.order_topic_conf == ("a:4" if is_wanted else None)


def test_a_data_version_is_compared_and_counts_as_a_sign_of_life() -> None:
    desk = Desk()
    desk.register("a", 0, "orders")
    ask = route.QueryDataVersion(
        broker_name="a", broker_addr="10.0.0.1:1", cluster_name="cluster", broker_id=0
    )
    desk.now_ms = 100_000
    same = desk.ask(ask, DataVersion(counter=1, timestamp=5).encode())
    assert same.header == route.DataVersionReply(changed=False)
    assert DataVersion.decode(cast(bytes, same.body)) == DataVersion(counter=1, timestamp=5)
    other = desk.ask(ask, DataVersion(counter=2, timestamp=5).encode())
    assert other.header == route.DataVersionReply(changed=True)
    assert desk.routes.expire(200_000) == []
    desk.routes.closed(Link("a0"))
    gone = desk.ask(ask, DataVersion(counter=1, timestamp=5).encode())
    assert (gone.header, gone.body) == (route.DataVersionReply(changed=True), b"")


def test_a_heartbeat_counts_as_a_sign_of_life() -> None:
    desk = Desk()
    desk.register("a", 0, "orders")
    desk.now_ms = 100_000
    beat = route.BrokerHeartbeat(cluster_name="c", broker_addr="10.0.0.1:1", broker_name="a")
    assert desk.ask(beat).code == 0
    assert desk.routes.expire(200_000) == []


def test_members_of_a_broker_are_told() -> None:
    desk = Desk()
    desk.register("a", 0, "orders")
    for broker, addresses in (("a", {0: "10.0.0.1:1"}), ("nobody", {})):
        reply = desk.ask(route.BrokerMembers(cluster_name="cluster", broker_name=broker))
        group = BrokerMembersBody.decode(cast(bytes, reply.body)).broker_member_group
        assert group is not None
        assert group.broker_addrs == addresses


def test_write_permission_is_taken_and_given_back() -> None:
    desk = Desk()
    desk.register("a", 0, "one", "two")
    taken = desk.ask(route.WipeWritePermission(broker_name="a"))
    assert taken.header == route.WipeReply(wipe_topic_count=2)
    assert permission(desk) == 4
    given = desk.ask(route.AddWritePermission(broker_name="a"))
    assert given.header == route.AddWriteReply(add_topic_count=2)
    assert permission(desk) == 6


def permission(desk: Desk) -> int:
    found = Route.decode(cast(bytes, desk.ask(route.RouteOfTopic(topic="one")).body))
    return found.queue_datas[0].perm


def test_topics_are_listed_sorted() -> None:
    desk = Desk()
    desk.register("a", 0, "two", "one")
    assert topics(desk.ask(route.TopicNames())) == ["one", "two"]
    assert topics(desk.ask(route.TopicsOfCluster(cluster="cluster"))) == ["one", "two"]
    assert topics(desk.ask(route.TopicsOfCluster(cluster="none"))) == []
    assert topics(desk.ask(route.UnitTopics())) == []
    assert topics(desk.ask(route.UnitSubscriptionTopics())) == []
    assert topics(desk.ask(route.UnitSubscriptionOnlyTopics())) == []
    system = TopicList.decode(cast(bytes, desk.ask(route.SystemTopicsOfNameServer()).body))
    assert (system.broker_addr, system.topic_list) == ("10.0.0.1:1", ["a", "cluster"])


def topics(reply: Reply) -> list[str]:
    assert reply.code == 0
    return TopicList.decode(cast(bytes, reply.body)).topic_list


def test_lists_can_be_switched_off() -> None:
    desk = Desk(NameServerConfig(topic_lists=False, all_topics_list=False))
    assert desk.ask(route.TopicNames()).code == 1
    assert desk.ask(route.TopicsOfCluster(cluster="cluster")).code == 1
    assert desk.ask(route.UnitTopics()).code == 1


def test_a_topic_s_route_is_deleted() -> None:
    desk = Desk()
    desk.register("a", 0, "one", "two")
    assert desk.ask(route.DeleteTopicRoute(topic="one", cluster_name="other")).code == 0
    assert desk.ask(route.DeleteTopicRoute(topic="one")).code == 0
    assert topics(desk.ask(route.TopicNames())) == ["two"]


def test_key_value_settings_are_put_read_listed_and_deleted() -> None:
    desk = Desk()
    assert desk.ask(route.PutKv(namespace="n", key="k", value="v")).code == 0
    assert desk.ask(route.GetKv(namespace="n", key="k")).header == route.KvReply(value="v")
    listed = desk.ask(route.KvList(namespace="n"))
    assert KvTable.decode(cast(bytes, listed.body)).table == {"k": "v"}
    assert desk.ask(route.DeleteKv(namespace="n", key="k")).code == 0
    missing = desk.ask(route.GetKv(namespace="n", key="k"))
    assert (missing.code, missing.remark) == (22, "No config item, Namespace: n Key: k")
    assert desk.ask(route.KvList(namespace="n")).code == 22
    assert desk.saves == 2


def test_a_change_that_cannot_be_kept_is_taken_back() -> None:
    desk = Desk()
    desk.ask(route.PutKv(namespace="n", key="k", value="old"))
    desk.disk_is_broken = True
    reply = desk.ask(route.PutKv(namespace="n", key="k", value="new"))
    assert (reply.code, reply.remark) == (1, "cannot keep it: no room")
    assert desk.ask(route.DeleteKv(namespace="n", key="k")).code == 1
    assert desk.ask(route.PutKv(namespace="n", key="l", value="new")).code == 1
    assert desk.settings.of("n") == {"k": "old"}


def test_settings_are_read_and_some_are_changed_while_it_runs() -> None:
    desk = Desk(NameServerConfig(port=0, kv_path="/kv.json"))
    text = bytes(cast(bytes, desk.ask(route.ReadNameServerConfig()).body)).decode()
    assert "orderMessageEnable=false\n" in text
    assert "kvConfigPath=/kv.json\n" in text
    assert desk.ask(route.UpdateNameServerConfig(), text.encode()).code == 0
    assert desk.ask(route.UpdateNameServerConfig(), b"orderMessageEnable=true\n").code == 0
    assert b"orderMessageEnable=true\n" in cast(bytes, desk.ask(route.ReadNameServerConfig()).body)


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        (b"kvConfigPath=/etc/passwd", 16, "cannot change while it runs: kv_path"),
        (b"listenPort=1", 16, "cannot change while it runs: port"),
        (b"orderMessageEnable=maybe", 1, "takes true or false"),
        (b"orderMesageEnable=true", 1, "did you mean 'orderMessageEnable'"),
        (b"\xff", 1, "utf-8"),
    ],
)
def test_a_wrong_change_of_settings_is_refused(body: bytes, code: int, text: str) -> None:
    reply = Desk().ask(route.UpdateNameServerConfig(), body)
    assert reply.code == code
    assert text in (reply.remark or "")


def test_an_unknown_request_is_not_supported() -> None:
    reply = Desk().take(Command(4711))
    assert (reply.code, reply.remark) == (3, " request type 4711 not supported")


_codes = some.sampled_from(sorted(code for code in Desk().answer.codes))
_texts = some.text(max_size=8) | some.sampled_from(["0", "true", "10.0.0.1:1", "a"])
_names = some.sampled_from(
    ["brokerName", "brokerAddr", "clusterName", "brokerId", "topic", "namespace", "key", "value",
     "compressed", "bodyCrc32", "cluster", "heartbeatTimeoutMillis", "haServerAddr"]
)  # fmt: skip


@given(_codes, some.dictionaries(_names, _texts), some.binary(max_size=30))
def test_any_request_gets_an_answer(code: int, fields: dict[str, str], body: bytes) -> None:
    desk = Desk()
    desk.register("a", 0, "orders")
    assert isinstance(desk.take(Command(code, body=body, source=fields)), Reply)
    desk.routes.validate()
    desk.settings.validate()


def told(reply: Reply) -> dict[int, str]:
    return Route.decode(bytes(reply.body)).broker_datas[0].broker_addrs


def test_a_slave_is_shown_as_master_where_that_is_switched_on_and_only_reading_is_allowed() -> None:
    for is_supported, is_allowed in [(True, True), (False, True), (True, False)]:
        desk = Desk(NameServerConfig(acting_masters=is_supported))
        members = "rmq_sys_SYNC_BROKER_MEMBER_a"
        for number, port in [(0, 1), (2, 3), (1, 2)]:
            topics = ("orders", members)
            desk.register("a", number, *topics, port=port, enable_acting_master=is_allowed)
        before = {0: "10.0.0.1:1", 1: "10.0.0.1:2", 2: "10.0.0.1:3"}
        assert told(desk.ask(route.RouteOfTopic(topic="orders"))) == before
        desk.ask(
            route.UnregisterBroker(
                broker_name="a", broker_addr="10.0.0.1:1", cluster_name="cluster", broker_id=0
            ),
            link="a0",
        )
        slaves = {1: "10.0.0.1:2", 2: "10.0.0.1:3"}
        acting = {0: "10.0.0.1:2", 2: "10.0.0.1:3"} if is_supported and is_allowed else slaves
        found = desk.ask(route.RouteOfTopic(topic="orders"))
        assert told(found) == acting
        assert Route.decode(bytes(found.body)).queue_datas[0].perm == (4 if is_allowed else 6)
        assert told(desk.ask(route.RouteOfTopic(topic=members))) == slaves
        body = BrokerMembersBody.decode(
            bytes(desk.ask(route.BrokerMembers(cluster_name="cluster", broker_name="a")).body)
        )
        assert body.broker_member_group.broker_addrs == slaves


def test_a_former_master_is_told_that_another_one_is_there_since() -> None:
    desk = Desk()
    for port, epoch in [(1, 1), (2, 2), (1, 1)]:
        body = registration.encode(
            RegisterBody(
                topics=TopicTable(
                    DataVersion(counter=1, timestamp=5, state_version=epoch),
                    topic_config_table={"orders": TopicConfig(topic_name="orders")},
                )
            )
        )
        header = route.RegisterBroker(
            broker_name="a",
            broker_addr=f"10.0.0.1:{port}",
            cluster_name="cluster",
            broker_id=0,
            body_crc32=body_crc(body),
        )
        reply = desk.ask(header, body, link=f"at {port}")
    assert (reply.code, reply.remark) == (0, "not registered: 10.0.0.1:2 is a 0 since")
    assert told(desk.ask(route.RouteOfTopic(topic="orders"))) == {0: "10.0.0.1:2"}
