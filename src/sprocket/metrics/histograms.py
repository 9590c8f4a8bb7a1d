"""The histograms of a broker as metrics. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sprocket.message.topic import is_dead_letter_topic, is_retry_topic, is_system_topic
from sprocket.message.topic_attributes import topic_type
from sprocket.metrics import names
from sprocket.metrics.model import Family
from sprocket.protocol.codes import request_name, response_name

if TYPE_CHECKING:
    from sprocket.broker.tables.measures import BrokerMeasures
    from sprocket.broker.tables.topics import Topics

_REMOTING = "remoting"
_DISK = ("local", "disk")


def histograms(measures: BrokerMeasures, topics: Topics) -> Iterator[Family]:
    """All histograms, those of topics that are gone left out.

    Retries and dead letters have no sizes, as at RocketMQ.
    """
    sizes = Family(names.SIZES)
    for topic, histogram in measures.sizes.items():
        is_sent = not (is_retry_topic(topic) or is_dead_letter_topic(topic))
        if is_sent and topics.get(topic) is not None:
            sizes.histograms[of_topic(topics, topic)] = histogram
    yield sizes
    calls = Family(names.RPC_MS)
    for kind, histogram in measures.calls.items():
        labels = (
            _REMOTING,
            "other" if kind.code < 0 else request_name(kind.code).lower(),
            response_name(kind.response).lower(),
            _truth(kind.is_held),
            kind.result,
        )
        calls.histograms[labels] = histogram
    yield calls
    yield Family(
        names.NEW_TOPIC_MS,
        histograms={
            (_status(each.is_done), _truth(each.is_system)): histogram
            for each, histogram in measures.new_topics.items()
        },
    )
    yield Family(
        names.NEW_GROUP_MS,
        histograms={(_status(done),): each for done, each in measures.new_groups.items()},
    )
    yield Family(
        names.COMMIT_S, histograms={(topic,): each for topic, each in measures.commits.items()}
    )
    yield Family(
        names.DELAY_S,
        histograms={(*_DISK, topic): each for topic, each in measures.delays.items()},
    )


def of_topic(topics: Topics, topic: str) -> tuple[str, str, str]:
    """The labels of what came into a topic."""
    known = topics.get(topic)
    kind = topic_type(None if known is None else known.attributes).value.lower()
    return topic, kind, _truth(is_system_topic(topic))


def _status(is_done: bool) -> str:
    return "success" if is_done else "failure"


def _truth(value: bool) -> str:
    return "true" if value else "false"
