"""Which rights each call of the gRPC service needs. Pure.

They are those of the requests that a client of remoting makes for the same. RocketMQ's proxy looks
at the first message of a send only, and at the group only where the time of a message is changed;
here each topic that a call names counts.
Source: DefaultAuthorizationContextBuilder of RocketMQ 5.3 (module auth).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sprocket.auth.needs import PUB, ROUTE, SUB, Actions, topic_needs
from sprocket.auth.policies import Need
from sprocket.auth.resources import Resource, ResourceKind
from sprocket.proxy.messages import rocketmq_pb2 as pb


def call_needs(request: Any) -> Iterator[Need]:
    """The rights that a request needs; each once."""
    yield from dict.fromkeys(_NEEDS[type(request)](request))


def _group(name: str) -> Need:
    return Need(Resource(ResourceKind.GROUP, name), SUB)


def _sent(request: pb.SendMessageRequest) -> Iterator[Need]:
    for message in request.messages:
        yield from topic_needs(message.topic.name, PUB)


def _of_topic(actions: Actions) -> Callable[[Any], Iterator[Need]]:
    def needs(request: Any) -> Iterator[Need]:
        yield from topic_needs(request.topic.name, actions)

    return needs


def _consumed(request: Any) -> Iterator[Need]:
    yield _group(request.group.name)
    yield from topic_needs(request.topic.name, SUB)


def _received(request: pb.ReceiveMessageRequest) -> Iterator[Need]:
    yield _group(request.group.name)
    yield from topic_needs(request.message_queue.topic.name, SUB)


def _member(request: Any) -> Iterator[Need]:
    if request.group.name:
        yield _group(request.group.name)


def _telemetry(request: pb.TelemetryCommand) -> Iterator[Need]:
    settings = request.settings
    for topic in settings.publishing.topics:
        yield from topic_needs(topic.name, PUB)
    if settings.WhichOneof("pub_sub") == "subscription":
        yield _group(settings.subscription.group.name)
        for entry in settings.subscription.subscriptions:
            yield from topic_needs(entry.topic.name, SUB)


_NEEDS: Mapping[type, Callable[[Any], Iterator[Need]]] = {
    pb.QueryRouteRequest: _of_topic(ROUTE),
    pb.QueryAssignmentRequest: _consumed,
    pb.HeartbeatRequest: _member,
    pb.NotifyClientTerminationRequest: _member,
    pb.TelemetryCommand: _telemetry,
    pb.SendMessageRequest: _sent,
    pb.RecallMessageRequest: _of_topic(PUB),
    pb.EndTransactionRequest: _of_topic(PUB),
    pb.ReceiveMessageRequest: _received,
    pb.AckMessageRequest: _consumed,
    pb.ChangeInvisibleDurationRequest: _consumed,
    pb.ForwardMessageToDeadLetterQueueRequest: _consumed,
}
