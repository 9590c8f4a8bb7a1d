"""The page `docs/formats/rights.md`, made from the rules: `python -m tests.auth.rights_page`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from sprocket.auth.nameserver_needs import NAMESERVER_RULES
from sprocket.auth.needs import RULES, Rule
from sprocket.protocol.codes import OwnRequestCode, RequestCode
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.call_needs import call_needs

PAGE = Path(__file__).parents[2] / "docs" / "formats" / "rights.md"

_HEAD = """\
# The rights that each request needs

This page is made from the rules that brokers, name servers and proxies check by \
(`python -m tests.auth.rights_page` writes it, a test compares it). What rights are, and how users \
get them: [security](../guide/security.md).

A right is an action on a resource. *Pub or Sub* means that one of them is enough; of several \
rights, separated by `;`, all are needed. *Of those that it names*: what a request leaves out \
needs nothing. The right to a retry topic is that to its group. A request that has no row needs a \
super user, who needs no rights.
"""
_GRPC = """\
A gRPC client calls these at a proxy. A topic that is named several times counts once.
"""


def _name(code: int) -> str:
    for kind in (RequestCode, OwnRequestCode):
        if code in kind._value2member_map_:
            return kind(code).name.lower().replace("_", " ")
    raise AssertionError(f"request {code} has no name")


def _rows(rules: Mapping[int, Rule]) -> Iterator[str]:
    yield "| Code | Request | Rights |"
    yield "|---|---|---|"
    for code, rule in sorted(rules.items()):
        yield f"| {int(code)} | {_name(code)} | {rule.text} |"


def _calls() -> Iterator[str]:
    """The calls of the gRPC service, with all that they may name."""
    yield "| Call | Rights |"
    yield "|---|---|"
    topic, group = pb.Resource(name="…"), pb.Resource(name="…")
    producer, consumer = pb.TelemetryCommand(), pb.TelemetryCommand()
    producer.settings.publishing.topics.append(topic)
    consumer.settings.subscription.group.CopyFrom(group)
    consumer.settings.subscription.subscriptions.add().topic.CopyFrom(topic)
    both = {"topic": topic, "group": group}
    requests = {
        "QueryRoute": pb.QueryRouteRequest(topic=topic),
        "QueryAssignment": pb.QueryAssignmentRequest(**both),
        "SendMessage": pb.SendMessageRequest(messages=[pb.Message(topic=topic)]),
        "RecallMessage": pb.RecallMessageRequest(topic=topic),
        "EndTransaction": pb.EndTransactionRequest(topic=topic),
        "ReceiveMessage": pb.ReceiveMessageRequest(
            group=group, message_queue=pb.MessageQueue(topic=topic)
        ),
        "AckMessage": pb.AckMessageRequest(**both),
        "ChangeInvisibleDuration": pb.ChangeInvisibleDurationRequest(**both),
        "ForwardMessageToDeadLetterQueue": pb.ForwardMessageToDeadLetterQueueRequest(**both),
        "Telemetry, settings of a producer": producer,
        "Telemetry, settings of a consumer": consumer,
        "Heartbeat, NotifyClientTermination of a consumer": pb.HeartbeatRequest(group=group),
        "Heartbeat, NotifyClientTermination of a producer": pb.HeartbeatRequest(),
    }
    for name, request in requests.items():
        needs = [
            f"{each.resource.kind.lower()}: {' or '.join(each.actions)}"
            for each in call_needs(request)
        ]
        yield f"| {name} | {'; '.join(needs) or 'none'} |"


def page() -> str:
    """The page."""
    parts = [
        _HEAD,
        "## At a broker\n",
        *_rows(RULES),
        "\n## At a name server\n",
        *_rows(NAMESERVER_RULES),
        "\n## At a proxy\n",
        _GRPC,
        *_calls(),
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
