"""Every request is recorded or known to change nothing by an operator."""

from __future__ import annotations

import asyncio

from sprocket.audit.codes import CHANGES, CHANGES_BY_OTHERS, CHANGES_BY_TOOLS, UNRECORDED
from sprocket.nameserver.nameserver import NameServer
from sprocket.protocol.codes import OwnRequestCode, RequestCode
from tests.broker.parts import Asker, play

TABLES = (CHANGES, CHANGES_BY_OTHERS, CHANGES_BY_TOOLS, UNRECORDED)


def test_each_code_of_rocketmq_and_of_this_project_is_in_one_table() -> None:
    for code in (*RequestCode, *OwnRequestCode):
        assert sum(code in table for table in TABLES) == 1, code.name


def test_each_request_that_a_broker_answers_is_in_a_table() -> None:
    async def test(asker: Asker) -> None:
        dispatch = asker.broker._dispatch
        assert dispatch is not None
        answered = dispatch.counts.keys() - {-1}
        assert len(answered) > 60
        assert not answered - frozenset().union(*TABLES)

    play(test)


def test_each_request_that_a_name_server_answers_is_in_a_table() -> None:
    async def codes() -> frozenset[int]:
        return NameServer()._answer.codes

    answered = asyncio.run(codes())
    assert len(answered) > 20
    assert not answered - frozenset().union(*TABLES)
