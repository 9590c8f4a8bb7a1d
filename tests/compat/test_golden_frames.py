"""Every frame that real RocketMQ parts were recorded to send is read, and written alike."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sprocket.base.errors import RemoteProtocolError
from sprocket.protocol import bodies, frame, lenient_json
from sprocket.protocol.codes import RequestCode, ResponseCode
from sprocket.protocol.command import BINARY, JSON, Command
from sprocket.protocol.connection import Connection
from sprocket.protocol.requests.table import REQUESTS

FRAMES = Path(__file__).resolve().parent.parent / "golden" / "frames"
RECORDINGS = sorted(str(p.relative_to(FRAMES)) for p in FRAMES.rglob("*.jsonl.gz"))

REQUEST_BODIES: dict[int, type[bodies.Body]] = {
    RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: bodies.TopicConfigList,
    RequestCode.HEART_BEAT: bodies.HeartbeatBody,
    RequestCode.LOCK_BATCH_MQ: bodies.LockBody,
    RequestCode.UNLOCK_BATCH_MQ: bodies.LockBody,
    RequestCode.CHECK_CLIENT_CONFIG: bodies.CheckClientBody,
    RequestCode.REGISTER_BROKER: bodies.RegisterBody,
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: bodies.GroupConfig,
    RequestCode.RESET_CONSUMER_CLIENT_OFFSET: bodies.ResetOffsetBody,
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: bodies.GroupConfigList,
    RequestCode.QUERY_DATA_VERSION: bodies.DataVersion,
    RequestCode.QUERY_ASSIGNMENT: bodies.AssignmentQuery,
    RequestCode.SET_MESSAGE_REQUEST_MODE: bodies.RequestMode,
    RequestCode.BATCH_ACK_MESSAGE: bodies.AckBatchBody,
}
REPLY_BODIES: dict[int, type[bodies.Body]] = {
    RequestCode.GET_ALL_TOPIC_CONFIG: bodies.TopicTable,
    RequestCode.GET_BROKER_RUNTIME_INFO: bodies.KvTable,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: bodies.GroupMemberList,
    RequestCode.LOCK_BATCH_MQ: bodies.LockedBody,
    RequestCode.GET_ALL_CONSUMER_OFFSET: bodies.OffsetTable,
    RequestCode.GET_ALL_DELAY_OFFSET: bodies.DelayOffsets,
    RequestCode.GET_TIMER_METRICS: bodies.TimerMetricsBody,
    RequestCode.REGISTER_BROKER: bodies.KvTable,
    RequestCode.GET_ROUTEINFO_BY_TOPIC: bodies.Route,
    RequestCode.GET_BROKER_CLUSTER_INFO: bodies.ClusterInfo,
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: bodies.GroupTable,
    RequestCode.GET_TOPIC_STATS_INFO: bodies.TopicStatsTable,
    RequestCode.GET_CONSUMER_CONNECTION_LIST: bodies.ConsumerConnection,
    RequestCode.GET_PRODUCER_CONNECTION_LIST: bodies.ProducerConnection,
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: bodies.TopicList,
    RequestCode.GET_CONSUME_STATS: bodies.ConsumeStats,
    RequestCode.GET_KVLIST_BY_NAMESPACE: bodies.KvTable,
    RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: bodies.ConsumeStatusBody,
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: bodies.ResetOffsetBody,
    RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: bodies.ConsumeStatusBody,
    RequestCode.GET_TOPICS_BY_CLUSTER: bodies.TopicList,
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: bodies.GroupList,
    RequestCode.QUERY_CONSUME_TIME_SPAN: bodies.ConsumeTimeSpans,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: bodies.TopicList,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: bodies.TopicList,
    RequestCode.GET_CONSUMER_RUNNING_INFO: bodies.RunningInfo,
    RequestCode.QUERY_CORRECTION_OFFSET: bodies.CorrectionOffsets,
    RequestCode.CONSUME_MESSAGE_DIRECTLY: bodies.ConsumeDirectlyResult,
    RequestCode.GET_UNIT_TOPIC_LIST: bodies.TopicList,
    RequestCode.VIEW_BROKER_STATS_DATA: bodies.BrokerStatsBody,
    RequestCode.GET_BROKER_CONSUME_STATS: bodies.ConsumeStatsList,
    RequestCode.QUERY_CONSUME_QUEUE: bodies.ConsumeQueueBody,
    RequestCode.QUERY_DATA_VERSION: bodies.DataVersion,
    RequestCode.GET_ALL_PRODUCER_INFO: bodies.ProducerTable,
    RequestCode.QUERY_TOPICS_BY_CONSUMER: bodies.TopicList,
    RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER: bodies.SubscriptionBody,
    RequestCode.GET_TOPIC_CONFIG: bodies.TopicConfig,
    RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: bodies.GroupConfig,
    RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN: bodies.GroupForbidden,
    RequestCode.QUERY_ASSIGNMENT: bodies.AssignmentBody,
    RequestCode.GET_ALL_MESSAGE_REQUEST_MODE: bodies.RequestModes,
    RequestCode.GET_BROKER_MEMBER_GROUP: bodies.BrokerMembersBody,
    RequestCode.GET_BROKER_HA_STATUS: bodies.ReplicaStateBody,
}
#: Codes that no part of RocketMQ answers any more: the broker says 3.
UNDECLARED = {
    RequestCode.SUSPEND_CONSUMER, RequestCode.RESUME_CONSUMER, 213, 214, 301, 302, 3442, 9999,
}  # fmt: skip
#: The one recorded frame that is malformed inside: a remark of 2^31-1 bytes.
MALFORMED = "7fffffff"


def recorded(name: str) -> Iterator[tuple[dict[str, Any], bytes]]:
    with gzip.open(FRAMES / name, "rt") as lines:
        for line in lines:
            record = json.loads(line)
            if record["dir"] in ("request", "response") and MALFORMED not in record["hex"][42:50]:
                yield record, bytes.fromhex(record["hex"])


def read(raw: bytes) -> Command:
    (command,) = Connection().receive(raw)
    return command


def joined(command: Command) -> bytes:
    return b"".join(frame.encode(command))


def request_of(record: dict[str, Any]) -> int:
    """Code of the request that a response answers, as it was meant."""
    return getattr(RequestCode, record.get("of_name") or "", record.get("of") or 0)


def test_the_recordings_are_there() -> None:
    assert len(RECORDINGS) >= 53


@pytest.mark.parametrize("name", RECORDINGS)
def test_frames_are_read_and_written_byte_for_byte(name: str) -> None:
    for record, raw in recorded(name):
        command = read(raw)
        assert command.serialization == (JSON if record["serialize"] == "json" else BINARY)
        assert command.opaque == record["opaque"]
        assert command.is_response == (record["dir"] == "response")
        if b"serializeTypeCurrentRPC" in raw or command.serialization == BINARY:
            assert joined(command) == raw, record["n"]
            dict(command.fields)  # from texts the same bytes come out as from the raw fields
            if command.language == "JAVA" and has_fields(command, raw):
                assert joined(command) == raw, record["n"]


def has_fields(command: Command, raw: bytes) -> bool:
    """Whether the frame says that it has none, if it has none: we always do."""
    return command.serialization == BINARY or b'"extFields"' in raw


@pytest.mark.parametrize("name", RECORDINGS)
def test_headers_are_read_where_the_real_server_did_not_fail(name: str) -> None:
    unread: dict[tuple[str, int], str] = {}
    for record, raw in recorded(name):
        command = read(raw)
        call = (record["conn"], record["opaque"])
        if command.is_response:
            if call in unread and request_of(record):
                assert command.code in (1, 3), (record["step"], unread.pop(call))
            continue
        declared = REQUESTS.get(command.code)
        if declared is None:
            assert command.code in UNDECLARED
            continue
        try:
            header = command.read(declared)
        except RemoteProtocolError as error:
            unread[call] = str(error)
            continue
        unread.pop(call, None)
        assert Command.request(header).read(declared) == header
        assert command.code == request_code(record)


def request_code(record: dict[str, Any]) -> int:
    return int(getattr(RequestCode, record["code_name"], record["code"]))


@pytest.mark.parametrize("name", RECORDINGS)
def test_headers_of_successful_replies_are_read(name: str) -> None:
    for record, raw in recorded(name):
        command = read(raw)
        if not command.is_response:
            continue
        assert command.code in set(ResponseCode)
        declared = REQUESTS.get(request_of(record))
        if declared is None or command.code != ResponseCode.SUCCESS:
            continue
        if declared.reply is None:
            assert set(command.fields) <= {"MSG_REGION", "TRACE_ON"}, record["n"]
        else:
            header = command.read(declared.reply)
            assert Command(0, source=header.to_fields()).read(declared.reply) == header


@pytest.mark.parametrize("name", RECORDINGS)
def test_json_bodies_are_read_and_written_alike(name: str) -> None:
    for record, raw in recorded(name):
        command = read(raw)
        data = bytes(command.body)
        if data[:1] != b"{" or record["step"] == "heartbeat: broken JSON":
            continue
        kind = body_kind(record, command)
        body = kind.decode(data)
        written = written_alike(body, data)
        if command.language == "JAVA":
            assert written == data, record["n"]
        else:  # other order, blanks, defaults left out
            assert kind.decode(written) == body


def body_kind(record: dict[str, Any], command: Command) -> type[bodies.Body]:
    if command.is_response:
        return REPLY_BODIES[request_of(record)]
    kind = REQUEST_BODIES[command.code]
    is_list = kind is bodies.ResetOffsetBody and b'"offsetTable":[' in bytes(command.body)
    return bodies.ResetOffsetList if is_list else kind


def written_alike(body: bodies.Body, data: bytes) -> bytes:
    if isinstance(body, bodies.Route):
        is_standard = not any(
            isinstance(number, int)
            for broker in lenient_json.parse(data)["brokerDatas"]
            for number in broker["brokerAddrs"]
        )
        return body.encode(standard=is_standard)
    return body.encode()


def test_malformed_frames_of_the_recordings_are_refused() -> None:
    with gzip.open(FRAMES / "probe/errors.jsonl.gz", "rt") as lines:
        records = [json.loads(line) for line in lines]
    malformed = [
        record["hex"]
        for record in records
        if record["dir"] in ("bad", "partial") or MALFORMED in record.get("hex", "")[42:50]
    ]
    assert len(malformed) == 10
    for raw in malformed:
        with pytest.raises(RemoteProtocolError):
            Connection().receive(bytes.fromhex(raw))
