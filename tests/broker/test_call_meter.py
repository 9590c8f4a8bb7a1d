"""Requests are measured until their replies, whatever kind of reply it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from sprocket.base.errors import SystemFailure
from sprocket.broker.call_meter import OTHER, CallMeter
from sprocket.broker.tables.measures import BrokerMeasures, CallKind, TopicCreation
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.testing.loop import simulate

SEND, PULL = RequestCode.SEND_MESSAGE_V2, RequestCode.PULL_MESSAGE


def request(code: int, *, flag: int = 0, **fields: str) -> Command:
    return Command(code=code, flag=flag, source=fields)


def measured(
    outcomes: Callable[[], Sequence[Any]], commands: Sequence[Command], *, times: int = 1
) -> tuple[BrokerMeasures, list[Any]]:
    """What was measured of requests with these outcomes, and the replies."""
    measures = BrokerMeasures()
    replies: list[Any] = []

    async def main(network: Any) -> None:
        answer = CallMeter(measures).measured(lambda asked, peer: outcomes())
        for _ in range(times):
            for each in answer(commands, None):  # type: ignore[arg-type]
                if each is None or isinstance(each, bytes | Reply):
                    replies.append(each)
                    continue
                try:
                    replies.append(await asyncio.wait_for(each, 10))
                except (SystemFailure, TimeoutError) as error:
                    replies.append(type(error))

    simulate(main)
    return measures, replies


async def later(seconds: float, outcome: Any) -> Any:
    await asyncio.sleep(seconds)
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def test_sends_that_are_answered_at_once_are_counted_one_by_one() -> None:
    commands = [request(SEND)] * 5
    measures, replies = measured(lambda: [b"x"] * 5, commands, times=3)
    (kind,) = measures.calls
    assert kind == CallKind(SEND, 0, False, "success")
    assert (measures.calls[kind].count, replies) == (15, [b"x"] * 15)
    assert measures.calls[kind].counts[0] == 15


@pytest.mark.parametrize(
    ("code", "outcome", "kind", "bucket"),
    [
        (SEND, b"x", CallKind(SEND, 0, False, "success"), 0),
        (SEND, Reply(code=14), CallKind(SEND, 14, False, "success"), 0),
        (SEND, Reply(code=1), CallKind(SEND, 1, False, "process_request_failed"), 0),
        (PULL, Reply(code=19), CallKind(PULL, 19, True, "success"), 0),
        (777_777, Reply(code=3), CallKind(OTHER, 3, False, "success"), 0),
    ],
)
def test_a_request_is_counted_with_its_code_and_how_it_ended(
    code: int, outcome: Any, kind: CallKind, bucket: int
) -> None:
    measures, replies = measured(lambda: [outcome], [request(code)])
    assert list(measures.calls) == [kind]
    assert measures.calls[kind].counts[bucket] == 1
    assert replies == [outcome]


@pytest.mark.parametrize(
    ("seconds", "outcome", "kind", "ms"),
    [
        (0.05, Reply(code=0), CallKind(PULL, 0, True, "success"), 50),
        (2.5, b"x", CallKind(PULL, 0, True, "success"), 2_500),
        (0.5, SystemFailure("x"), CallKind(PULL, 1, True, "process_request_failed"), 500),
        (99, b"x", CallKind(PULL, 0, True, "cancelled"), 10_000),
    ],
)
def test_a_reply_that_comes_later_is_measured_then(
    seconds: float, outcome: Any, kind: CallKind, ms: float
) -> None:
    measures, _ = measured(lambda: [later(seconds, outcome)], [request(PULL)])
    assert list(measures.calls) == [kind]
    assert measures.calls[kind].total == pytest.approx(ms, abs=5)


def test_requests_that_share_a_wait_are_all_measured_and_those_without_replies_too() -> None:
    commands = [request(SEND), request(SEND), request(SEND, flag=2)]
    measures, replies = measured(lambda: [later(0.02, b"xy"), None, None], commands)
    assert replies == [b"xy", None, None]
    assert {kind.result: each.count for kind, each in measures.calls.items()} == {
        "success": 2,
        "oneway": 1,
    }


def test_creations_are_measured_besides() -> None:
    code = RequestCode.UPDATE_AND_CREATE_TOPIC
    measures, _ = measured(lambda: [Reply(code=0)], [request(code, topic="orders")])
    assert list(measures.new_topics) == [TopicCreation(True, False)]
    measures, _ = measured(lambda: [later(0.2, Reply(code=1))], [request(code, topic="TBW102")])
    assert list(measures.new_topics) == [TopicCreation(False, True)]
    group = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
    measures, _ = measured(lambda: [Reply(code=0)], [request(group)])
    assert list(measures.new_groups) == [True]


def test_what_a_shortcut_takes_is_measured() -> None:
    measures = BrokerMeasures()
    counts = iter([0, 7, 7, 7])

    async def main(network: Any) -> None:
        meter = CallMeter(measures)
        for outcome in ((5, b"x"), None):
            take = meter.measured_shortcut(lambda data, peer, o=outcome: o, lambda: next(counts))
            assert take(b"data", None) == outcome  # type: ignore[arg-type]

    simulate(main)
    assert [each.count for each in measures.calls.values()] == [7]
