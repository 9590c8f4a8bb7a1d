"""Why requests are refused."""

from __future__ import annotations

import pytest

from sprocket.nameserver.config import NameServerConfig
from sprocket.nameserver.configuration import Configuration
from sprocket.nameserver.dispatch import NameServerDispatch
from sprocket.nameserver.routes import RouteTable
from sprocket.nameserver.settings import KeyValueSettings
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.unanswered import (
    AT_BROKERS,
    AT_NAME_SERVERS,
    broker_remark,
    name_server_remark,
)
from tests.broker.parts import Asker, play


def test_a_broker_answers_each_request_of_rocketmq_or_says_why_not() -> None:
    async def test(asker: Asker) -> None:
        dispatch = asker.broker._dispatch
        assert dispatch is not None
        answered = set(dispatch.counts)
        assert not answered & set(AT_BROKERS)
        assert set(map(int, RequestCode)) <= answered | set(AT_BROKERS)

    play(test)


def test_a_name_server_answers_each_request_or_says_why_not() -> None:
    configuration = Configuration(NameServerConfig())
    answered = NameServerDispatch(
        RouteTable(), KeyValueSettings(), configuration=configuration, now_ms=lambda: 0,
        save=lambda: None,
    ).codes  # fmt: skip
    assert not answered & set(AT_NAME_SERVERS)
    for code in set(RequestCode) - answered:
        assert ": " in name_server_remark(code)


@pytest.mark.parametrize("remark", [broker_remark, name_server_remark])
def test_a_remark_begins_with_rocketmq_s_words(remark) -> None:  # type: ignore[no-untyped-def]
    assert remark(9999) == " request type 9999 not supported"
    known = remark(RequestCode.CONTROLLER_ELECT_MASTER)
    assert known.startswith(" request type 1002 not supported: this is no controller")
