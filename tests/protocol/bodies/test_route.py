from __future__ import annotations

from sprocket.protocol.bodies import BrokerData, GroupMemberList, QueueData, Route

ROUTE = Route(
    [BrokerData({0: "1.2.3.4:10911", 1: "1.2.3.5:10911"}, "b", "c")],
    queue_datas=[QueueData("b", 6, 4, 0, 4)],
)


def test_new_clients_get_standard_json() -> None:
    assert ROUTE.encode() == (
        b'{"brokerDatas":[{"brokerAddrs":{"0":"1.2.3.4:10911","1":"1.2.3.5:10911"},'
        b'"brokerName":"b","cluster":"c","enableActingMaster":false}],"filterServerTable":{},'
        b'"queueDatas":[{"brokerName":"b","perm":6,"readQueueNums":4,"topicSysFlag":0,'
        b'"writeQueueNums":4}]}'
    )


def test_old_clients_get_bare_numbers_and_nothing_else_differs() -> None:
    quoted = ROUTE.encode()
    bare = quoted.replace(b'"0":', b"0:").replace(b'"1":', b"1:")
    assert ROUTE.encode(standard=False) == bare


def test_both_are_read() -> None:
    assert Route.decode(ROUTE.encode()) == ROUTE
    assert Route.decode(ROUTE.encode(standard=False)) == ROUTE


def test_an_empty_list_is_written() -> None:
    assert GroupMemberList().encode() == b'{"consumerIdList":[]}'
