"""Each call needs the rights of what it does."""

from __future__ import annotations

from typing import Any

import pytest

from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.call_needs import call_needs

TOPIC, GROUP = pb.Resource(name="orders"), pb.Resource(name="billing")
CONSUMED = ["Group:billing Sub", "Topic:orders Sub"]


def needs(request: Any) -> list[str]:
    return [f"{each.resource} {'|'.join(each.actions)}" for each in call_needs(request)]


def settings(kind: str) -> pb.TelemetryCommand:
    made = pb.TelemetryCommand()
    if kind == "publishing":
        made.settings.publishing.topics.extend([TOPIC, pb.Resource(name="bills")])
    else:
        made.settings.subscription.group.name = "billing"
        for name in ("orders", "bills"):
            made.settings.subscription.subscriptions.add().topic.name = name
    return made


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (
            pb.SendMessageRequest(
                messages=[pb.Message(topic=pb.Resource(name=each)) for each in "aba"]
            ),
            ["Topic:a Pub", "Topic:b Pub"],
        ),
        (
            pb.SendMessageRequest(messages=[pb.Message(topic=pb.Resource(name="%RETRY%billing"))]),
            ["Group:billing Pub"],
        ),
        (pb.RecallMessageRequest(topic=TOPIC), ["Topic:orders Pub"]),
        (pb.EndTransactionRequest(topic=TOPIC), ["Topic:orders Pub"]),
        (pb.QueryRouteRequest(topic=TOPIC), ["Topic:orders Pub|Sub|Get"]),
        (pb.QueryAssignmentRequest(topic=TOPIC, group=GROUP), CONSUMED),
        (
            pb.ReceiveMessageRequest(group=GROUP, message_queue=pb.MessageQueue(topic=TOPIC)),
            CONSUMED,
        ),
        (pb.AckMessageRequest(topic=TOPIC, group=GROUP), CONSUMED),
        (pb.ChangeInvisibleDurationRequest(topic=TOPIC, group=GROUP), CONSUMED),
        (pb.ForwardMessageToDeadLetterQueueRequest(topic=TOPIC, group=GROUP), CONSUMED),
        (pb.HeartbeatRequest(group=GROUP), ["Group:billing Sub"]),
        (pb.HeartbeatRequest(client_type=pb.PRODUCER), []),
        (pb.NotifyClientTerminationRequest(group=GROUP), ["Group:billing Sub"]),
        (pb.NotifyClientTerminationRequest(), []),
        (settings("publishing"), ["Topic:orders Pub", "Topic:bills Pub"]),
        (settings("subscription"), [*CONSUMED, "Topic:bills Sub"]),
        (pb.TelemetryCommand(thread_stack_trace=pb.ThreadStackTrace(nonce="n")), []),
    ],
)
def test_needs(request_: Any, expected: list[str]) -> None:
    assert needs(request_) == expected
