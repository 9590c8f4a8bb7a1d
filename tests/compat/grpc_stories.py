"""The stories whose transcripts are compared: right and wrong requests of every method.

Topics and groups are those of `TOPICS` and `GROUPS`. A topic that has messages is used by one
story alone.
"""

from __future__ import annotations

import base64
import time
import zlib
from typing import Any

from tests.compat.grpc_answers import Json, Teller, story

#: Type and number of queues of each topic.
TOPICS = {
    "Routed": ("NORMAL", 4),
    "RoutedFifo": ("FIFO", 2),
    "Sent": ("NORMAL", 1),
    "SentFifo": ("FIFO", 1),
    "SentDelay": ("DELAY", 1),
    "SentTransaction": ("TRANSACTION", 1),
    "Batched": ("NORMAL", 1),
    "Empty": ("NORMAL", 1),
    "Received": ("NORMAL", 1),
    "Filtered": ("NORMAL", 1),
    "Ordered": ("FIFO", 1),
    "Acked": ("NORMAL", 1),
    "Changed": ("NORMAL", 1),
    "Expired": ("NORMAL", 1),
    "Buried": ("NORMAL", 1),
    "Settled": ("TRANSACTION", 1),
    "Recalled": ("DELAY", 1),
}
#: Whether each group consumes in order.
GROUPS = {"members": False, "in-order": True}

#: More than a proxy takes in one message.
_TOO_LARGE = (4 << 20) + 1


def _named(name: str) -> Json:
    return {"name": name}


def _endpoints(teller: Teller) -> Json:
    host, _, port = teller.endpoint.rpartition(":")
    return {"scheme": "IPv4", "addresses": [{"host": host, "port": int(port)}]}


def _body(text: bytes = b"hello") -> str:
    return base64.b64encode(text).decode()


def _message(topic: str, *, body: bytes = b"hello", **system: Any) -> Json:
    user = system.pop("user", {})
    return {
        "topic": _named(topic),
        "userProperties": user,
        "systemProperties": {"messageId": "01AA", "messageType": "NORMAL", **system},
        "body": _body(body),
    }


def _send(teller: Teller, topic: str, **message: Any) -> Any:
    return teller.ask("SendMessage", {"messages": [_message(topic, **message)]})[0]


def _settings(kind: str, **more: Any) -> Json:
    return {"settings": {"clientType": kind, "requestTimeout": "3s", **more}}


def _subscribing(kind: str, group: str, topic: str) -> Json:
    expression = {"type": "TAG", "expression": "*"}
    subscriptions = [{"topic": _named(topic), "expression": expression}]
    return _settings(kind, subscription={"group": _named(group), "subscriptions": subscriptions})


def _receive(teller: Teller, topic: str, group: str = "members", **more: Any) -> list[Any]:
    timeout_s = more.pop("timeout_s", 25.0)
    metadata = more.pop("metadata", None)
    request = {
        "group": _named(group),
        "messageQueue": {"topic": _named(topic), "id": -1, "broker": {"name": "broker-a"}},
        "filterExpression": {"type": "TAG", "expression": "*"},
        "batchSize": 8,
        "invisibleDuration": "20s",
        "longPollingTimeout": "5s",
        **more,
    }
    return teller.ask("ReceiveMessage", request, metadata=metadata, timeout_s=timeout_s)


def _received(teller: Teller, topic: str, group: str = "members", **more: Any) -> Any:
    """One message of a topic, as it came."""
    for _ in range(5):
        for answer in _receive(teller, topic, group, **more):
            if answer.HasField("message"):
                return answer.message
        teller.transcript.pop()
    raise AssertionError(f"no message in {topic}")


def _consume(teller: Teller, topic: str, group: str = "members") -> None:
    """Be a simple consumer, as far as the proxy can see."""
    teller.ask("Telemetry", _subscribing("SIMPLE_CONSUMER", group, topic))
    teller.ask("Heartbeat", {"group": _named(group), "clientType": "SIMPLE_CONSUMER"})
    # What was sent before a group's first receive is not for it.
    _receive(teller, topic, group)


def _handle(topic: str, handle: str, group: str = "members", message_id: str = "01AA") -> Json:
    return {
        "group": _named(group),
        "topic": _named(topic),
        "receiptHandle": handle,
        "messageId": message_id,
    }


def _ack(topic: str, *handles: str, group: str = "members") -> Json:
    entries = [{"messageId": f"01A{n}", "receiptHandle": each} for n, each in enumerate(handles)]
    return {"group": _named(group), "topic": _named(topic), "entries": entries}


@story
def routes(teller: Teller) -> None:
    for topic in ("Routed", "RoutedFifo", "SentDelay", "SentTransaction"):
        teller.ask("QueryRoute", {"topic": _named(topic), "endpoints": _endpoints(teller)})
    for topic in ("Unknown", "", "no blanks", "TBW102", "SCHEDULE_TOPIC_XXXX", "x" * 200):
        teller.ask("QueryRoute", {"topic": _named(topic)})
    teller.ask("QueryRoute", {"topic": _named("Routed")})
    teller.ask("QueryRoute", {})


@story
def requests_without_a_client_id(teller: Teller) -> None:
    nobody = {"x-mq-client-id": None}
    teller.ask("QueryRoute", {"topic": _named("Routed")}, metadata=nobody)
    teller.ask("Heartbeat", {"clientType": "PRODUCER"}, metadata=nobody)
    teller.ask("SendMessage", {"messages": [_message("Sent")]}, metadata=nobody)
    teller.ask("AckMessage", _ack("Acked", "x"), metadata=nobody)
    teller.ask("NotifyClientTermination", {}, metadata=nobody)
    teller.ask("Telemetry", _settings("PRODUCER"), metadata=nobody)
    _receive(teller, "Empty", metadata=nobody)


@story
def requests_without_a_language(teller: Teller) -> None:
    teller.ask("QueryRoute", {"topic": _named("Unknown")}, metadata={"x-mq-language": None})
    unknown = {"x-mq-language": "COBOL", "x-mq-client-version": None, "x-mq-protocol": None}
    teller.ask("QueryRoute", {"topic": _named("Unknown")}, metadata=unknown)


@story
def assignments(teller: Teller) -> None:
    def ask(topic: str, group: str) -> None:
        asked = {"topic": _named(topic), "group": _named(group), "endpoints": _endpoints(teller)}
        teller.ask("QueryAssignment", asked)

    ask("Routed", "members")
    ask("RoutedFifo", "in-order")
    teller.ask("Telemetry", _subscribing("PUSH_CONSUMER", "in-order", "RoutedFifo"))
    ask("RoutedFifo", "in-order")
    ask("Routed", "nobody-knows")
    ask("Unknown", "members")
    ask("Routed", "")
    ask("Routed", "no blanks")
    ask("", "members")
    ask("Routed", "CID_RMQ_SYS_TRANS")


@story
def settings(teller: Teller) -> None:
    publishing = {"topics": [_named("Sent")], "maxBodySize": 1, "validateMessageType": False}
    teller.ask("Telemetry", _settings("PRODUCER", publishing=publishing))
    for kind, group in (
        *(("PUSH_CONSUMER", "members"), ("PUSH_CONSUMER", "in-order")),
        *(("SIMPLE_CONSUMER", "members"), ("SIMPLE_CONSUMER", "nobody-knows")),
    ):
        teller.ask("Telemetry", _subscribing(kind, group, "Routed"))


@story
def settings_that_are_wrong(teller: Teller) -> None:
    teller.ask("Telemetry", _settings("CLIENT_TYPE_UNSPECIFIED"))
    teller.ask("Telemetry", _settings("PULL_CONSUMER"))
    teller.ask("Telemetry", _settings("PRODUCER"))
    teller.ask("Telemetry", _subscribing("PUSH_CONSUMER", "no blanks", "Routed"))
    teller.ask("Telemetry", _subscribing("PUSH_CONSUMER", "", "Routed"))
    teller.ask("Telemetry", _subscribing("PUSH_CONSUMER", "members", "no blanks"))
    teller.ask("Telemetry", _subscribing("PUSH_CONSUMER", "members", "Unknown"))
    publishing = {"topics": [_named("no blanks")]}
    teller.ask("Telemetry", _settings("PRODUCER", publishing=publishing))


@story
def heartbeats(teller: Teller) -> None:
    group = _named("members")
    teller.ask("Heartbeat", {"clientType": "PRODUCER"})
    teller.ask("Heartbeat", {"clientType": "PUSH_CONSUMER", "group": group})
    teller.ask("Heartbeat", {"clientType": "CLIENT_TYPE_UNSPECIFIED"})
    teller.ask("Telemetry", _settings("PRODUCER", publishing={"topics": [_named("Sent")]}))
    teller.ask("Heartbeat", {"clientType": "PRODUCER"})
    teller.ask("Telemetry", _subscribing("PUSH_CONSUMER", "members", "Routed"))
    teller.ask("Heartbeat", {"clientType": "PUSH_CONSUMER", "group": group})
    teller.ask("Heartbeat", {"clientType": "SIMPLE_CONSUMER", "group": group})
    teller.ask("Heartbeat", {"clientType": "PULL_CONSUMER", "group": group})
    teller.ask("Heartbeat", {"clientType": "CLIENT_TYPE_UNSPECIFIED", "group": group})
    teller.ask("Heartbeat", {"clientType": "PUSH_CONSUMER", "group": _named("no blanks")})
    teller.ask("Heartbeat", {"clientType": "PUSH_CONSUMER"})


@story
def sends(teller: Teller) -> None:
    _send(teller, "Sent")
    _send(teller, "Sent", tag="t", keys=["a", "b"], user={"town": "Köln"})
    _send(teller, "SentFifo", messageType="FIFO", messageGroup="g")
    _send(teller, "SentFifo", messageType="FIFO", messageGroup="g" * 63)
    in_a_minute = _timestamp(time.time() + 60)
    _send(teller, "SentDelay", messageType="DELAY", deliveryTimestamp=in_a_minute)
    _send(teller, "SentDelay", messageType="DELAY", deliveryTimestamp=_timestamp(1_000))
    _send(teller, "SentTransaction", messageType="TRANSACTION")
    _send(teller, "Sent", body=zlib.compress(b"x" * 99), bodyEncoding="GZIP")


def _timestamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


@story
def sends_of_the_wrong_type(teller: Teller) -> None:
    later = _timestamp(time.time() + 60)
    _send(teller, "Sent", messageType="FIFO", messageGroup="g")
    _send(teller, "Sent", messageType="DELAY", deliveryTimestamp=later)
    _send(teller, "Sent", messageType="TRANSACTION")
    _send(teller, "Sent", messageType="MESSAGE_TYPE_UNSPECIFIED")
    _send(teller, "Sent", messageGroup="g")
    _send(teller, "Sent", deliveryTimestamp=later)
    _send(teller, "SentFifo")
    _send(teller, "SentFifo", messageType="FIFO")
    _send(teller, "SentDelay")
    _send(teller, "SentDelay", messageType="DELAY")
    _send(teller, "SentTransaction")


@story
def sends_that_are_wrong(teller: Teller) -> None:
    teller.ask("SendMessage", {})
    _send(teller, "Unknown")
    _send(teller, "")
    _send(teller, "no blanks")
    _send(teller, "TBW102")
    _send(teller, "Sent", body=b"")
    _send(teller, "Sent", messageId="")
    _send(teller, "Sent", messageId=" ")
    _send(teller, "Sent", tag=" ")
    _send(teller, "Sent", tag="a|b")
    _send(teller, "Sent", tag="a\tb")
    _send(teller, "Sent", keys=[" "])
    _send(teller, "Sent", keys=["a\nb"])
    _send(teller, "Sent", keys=["a b"])
    _send(teller, "Sent", user={"TAGS": "x"})
    _send(teller, "Sent", user={"UNIQ_KEY": "x"})
    _send(teller, "Sent", user={"a\x01": "x"})
    _send(teller, "Sent", user={"a": "x\x02"})
    _send(teller, "SentFifo", messageType="FIFO", messageGroup=" ")
    _send(teller, "SentFifo", messageType="FIFO", messageGroup="a\tb")
    _send(teller, "SentFifo", messageType="FIFO", messageGroup="g" * 64)
    too_late = _timestamp(time.time() + 86_400 * 2)
    _send(teller, "SentDelay", messageType="DELAY", deliveryTimestamp=too_late)
    slow = {"messageType": "TRANSACTION", "orphanedTransactionRecoveryDuration": "3601s"}
    _send(teller, "SentTransaction", **slow)


@story
def sends_that_are_too_large(teller: Teller) -> None:
    _send(teller, "Sent", body=b"x" * _TOO_LARGE)
    _send(teller, "Sent", user={f"p{n}": "v" for n in range(129)})
    _send(teller, "Sent", user={f"p{n}": "v" for n in range(128)})
    _send(teller, "Sent", user={"p": "x" * (16 * 1024)})
    _send(teller, "Sent", tag="t" * (16 * 1024 + 1))
    _send(teller, "Sent", user={"p": "x" * (16 * 1024 - 1)})


@story
def batches(teller: Teller) -> None:
    one, two = _message("Batched", messageId="01A1"), _message("Batched", messageId="01A2")
    teller.ask("SendMessage", {"messages": [one, two]})
    teller.ask("SendMessage", {"messages": [one, _message("Sent")]})
    teller.ask("SendMessage", {"messages": [one, _message("Batched", body=b"")]})
    fifo = [_message("SentFifo", messageType="FIFO", messageGroup=g) for g in ("a", "b")]
    teller.ask("SendMessage", {"messages": fifo})


@story
def receives_of_nothing(teller: Teller) -> None:
    _consume(teller, "Empty")
    _receive(teller, "Empty", longPollingTimeout="1s")


@story
def receives_that_are_wrong(teller: Teller) -> None:
    teller.ask("Telemetry", _subscribing("SIMPLE_CONSUMER", "members", "Empty"))
    _receive(teller, "Empty", invisibleDuration="9s")
    _receive(teller, "Empty", invisibleDuration="43201s")
    _receive(teller, "Empty", filterExpression={"type": "SQL", "expression": "a >"})
    _receive(teller, "Empty", filterExpression={"type": "SQL", "expression": ""}, timeout_s=8.0)
    _receive(teller, "no blanks")
    _receive(teller, "Empty", "no blanks")
    _receive(teller, "Unknown")
    _receive(teller, "Empty", "nobody-knows")
    _receive(teller, "Empty", batchSize=33)
    _receive(teller, "Empty", timeout_s=2.0)
    _receive(teller, "Empty", timeout_s=2.0, metadata={"x-mq-client-version": "5.0.2"})
    elsewhere = {"topic": _named("Empty"), "id": -1, "broker": {"name": "broker-z"}}
    _receive(teller, "Empty", messageQueue=elsewhere)


@story
def receives(teller: Teller) -> None:
    _consume(teller, "Received")
    _send(teller, "Received", tag="t", keys=["a", "b"], user={"town": "Köln"})
    message = _received(teller, "Received")
    teller.ask("AckMessage", _ack("Received", message.system_properties.receipt_handle))


@story
def receives_by_a_filter(teller: Teller) -> None:
    _consume(teller, "Filtered")
    _send(teller, "Filtered", tag="a", user={"n": "1"}, messageId="01F1")
    _send(teller, "Filtered", tag="b", user={"n": "2"}, messageId="01F2")
    _received(teller, "Filtered", filterExpression={"type": "TAG", "expression": "b || c"})
    _receive(teller, "Filtered", filterExpression={"type": "TAG", "expression": "b || c"})


@story
def receives_in_order(teller: Teller) -> None:
    _consume(teller, "Ordered", "in-order")
    for n in range(2):
        _send(teller, "Ordered", messageType="FIFO", messageGroup="g", messageId=f"01B{n}")
    first = _received(teller, "Ordered", "in-order", batchSize=1)
    # The queue is locked while a message is out.
    _receive(teller, "Ordered", "in-order", batchSize=1)
    handle = first.system_properties.receipt_handle
    teller.ask("AckMessage", _ack("Ordered", handle, group="in-order"))
    _received(teller, "Ordered", "in-order", batchSize=1)


@story
def acknowledgements(teller: Teller) -> None:
    _consume(teller, "Acked")
    _send(teller, "Acked")
    handle = _received(teller, "Acked").system_properties.receipt_handle
    teller.ask("AckMessage", _ack("Acked", "not a handle"))
    teller.ask("AckMessage", _ack("Acked", ""))
    teller.ask("AckMessage", _ack("Acked"))
    teller.ask("AckMessage", _ack("no blanks", handle))
    teller.ask("AckMessage", _ack("Acked", handle, group="no blanks"))
    teller.ask("AckMessage", _ack("Unknown", handle))
    teller.ask("AckMessage", _ack("Acked", handle, "not a handle"))
    teller.ask("AckMessage", _ack("Acked", handle))


@story
def changes(teller: Teller) -> None:
    _consume(teller, "Changed")
    _send(teller, "Changed")
    handle = _received(teller, "Changed").system_properties.receipt_handle

    def change(handle: str, time: str = "20s", topic: str = "Changed", **more: str) -> Any:
        asked = {**_handle(topic, handle, **more), "invisibleDuration": time}
        return teller.ask("ChangeInvisibleDuration", asked)[0]

    change("not a handle")
    change("")
    change(handle, "43201s")
    change(handle, "-1s")
    change(handle, topic="no blanks")
    change(handle, group="no blanks")
    newer = change(handle).receipt_handle
    change(handle)
    teller.ask("AckMessage", _ack("Changed", newer))


@story
def handles_that_have_expired(teller: Teller) -> None:
    _consume(teller, "Expired")
    _send(teller, "Expired")
    handle = _received(teller, "Expired").system_properties.receipt_handle
    asked = {**_handle("Expired", handle), "invisibleDuration": "1s"}
    newer = teller.ask("ChangeInvisibleDuration", asked)[0].receipt_handle
    teller.wait(2.5)
    teller.ask("AckMessage", _ack("Expired", newer))
    asked = {**_handle("Expired", newer), "invisibleDuration": "20s"}
    teller.ask("ChangeInvisibleDuration", asked)


@story
def dead_letters(teller: Teller) -> None:
    _consume(teller, "Buried")
    _send(teller, "Buried")
    handle = _received(teller, "Buried").system_properties.receipt_handle

    def bury(handle: str, topic: str = "Buried", **more: Any) -> None:
        asked = {**_handle(topic, handle), "deliveryAttempt": 17, "maxDeliveryAttempts": 16, **more}
        teller.ask("ForwardMessageToDeadLetterQueue", asked)

    bury("not a handle")
    bury("")
    bury(handle, topic="no blanks")
    bury(handle, group=_named("no blanks"))
    bury(handle)
    bury(handle)


@story
def transactions(teller: Teller) -> None:
    sent = _send(teller, "Settled", messageType="TRANSACTION")

    def end(resolution: str, transaction_id: str, topic: str = "Settled", **more: str) -> None:
        asked = {
            "topic": _named(topic),
            "messageId": "01AA",
            "transactionId": transaction_id,
            "resolution": resolution,
            "source": "SOURCE_CLIENT",
            **more,
        }
        teller.ask("EndTransaction", asked)

    right = sent.entries[0].transaction_id
    end("COMMIT", "")
    end("COMMIT", "unknown")
    end("COMMIT", right, topic="no blanks")
    end("COMMIT", right, messageId="01AB")
    end("COMMIT", right)
    end("ROLLBACK", right)
    other = _send(teller, "Settled", messageType="TRANSACTION").entries[0].transaction_id
    end("TRANSACTION_RESOLUTION_UNSPECIFIED", other)
    end("ROLLBACK", other)


@story
def recalls(teller: Teller) -> None:
    later = _timestamp(time.time() + 600)
    sent = _send(teller, "Recalled", messageType="DELAY", deliveryTimestamp=later)

    def recall(handle: str, topic: str = "Recalled") -> None:
        teller.ask("RecallMessage", {"topic": _named(topic), "recallHandle": handle})

    handle = sent.entries[0].recall_handle
    recall("")
    recall("not a handle")
    recall(_body(b"v1 Recalled broker-a 12345 01AA"))
    recall(_body(b"v1 Recalled broker-z 12345 01AA"))
    recall(_body(b"v2 Recalled broker-a 12345 01AA"))
    recall(handle, topic="Sent")
    recall(handle, topic="no blanks")
    recall(handle, topic="Unknown")
    recall(handle)
    recall(handle)


@story
def terminations(teller: Teller) -> None:
    teller.ask("NotifyClientTermination", {})
    teller.ask("NotifyClientTermination", {"group": _named("members")})
    teller.ask("Telemetry", _subscribing("PUSH_CONSUMER", "members", "Routed"))
    teller.ask("NotifyClientTermination", {"group": _named("members")})
    teller.ask("NotifyClientTermination", {"group": _named("members")})


@story
def bytes_that_are_no_message(teller: Teller) -> None:
    teller.ask_bytes("QueryRoute", b"\xff\xff\xff")
    teller.ask_bytes("SendMessage", b"\x0a\x05ab")
    teller.ask_bytes("QueryRoute", b"")


@story
def methods_that_are_not_served(teller: Teller) -> None:
    teller.ask_bytes("PullMessage", b"")
    teller.ask_bytes("QueryOffset", b"")
    teller.ask_bytes("UpdateOffset", b"")
    teller.ask_bytes("GetOffset", b"")
    teller.ask_bytes("Unheard", b"")
