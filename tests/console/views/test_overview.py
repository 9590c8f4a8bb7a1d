"""Brokers as rows, also those that do not answer, refuse, or give figures in another form."""

from __future__ import annotations

import pytest

from sprocket.admin.brokers import BrokerProcess
from sprocket.console.views.overview import broker_rows, cluster_figures, disk_look, replica_rows

#: As a broker of RocketMQ 5.3 says them.
JAVA = {
    "putTps": "12.5 10.0 9.0", "getTransferredTps": "3.0 2.0 1.0", "commitLogDiskRatio": "0.81",
    "bootTimestamp": "900000", "commitLogMinOffset": "0", "commitLogMaxOffset": "2048",
    "earliestMessageTimeStamp": "940000", "brokerVersionDesc": "V5_3_3",
    "msgPutTotalTodayNow": "1234",
}  # fmt: skip


def process(
    number: int = 0, *, state: dict[str, str] | None = None, up: bool = True
) -> BrokerProcess:
    return BrokerProcess("c", "a", number, "10.0.0.1:10911", up, JAVA if state is None else state)


def test_a_row_has_figures_with_units() -> None:
    (row,) = broker_rows([process()], 1_000_000)
    assert (row["put_text"], row["get_text"]) == ("12/s", "3/s")
    assert (row["disk_text"], row["disk_look"]) == ("81\u202f%", "warn")
    assert (row["log_text"], row["up_text"], row["oldest_text"]) == (
        "2.0 KiB",
        "1 min",
        "1 min ago",
    )
    assert (row["role"], row["state"]) == ("master", "serves")


def test_brokers_that_do_not_answer_or_refuse_have_a_row_too() -> None:
    dead, shy = broker_rows([process(1, state={}, up=False), process(state={})], 1_000_000)
    assert (dead["state"], dead["role"], dead["put_text"]) == ("does not answer", "slave 1", "–")
    assert (shy["state"], shy["state_look"]) == ("refuses figures", "warn")


@pytest.mark.parametrize("text", ["", "abc", "nan inf", "-"])
def test_figures_that_are_no_numbers_are_left_out(text: str) -> None:
    (row,) = broker_rows(
        [process(state={**JAVA, "putTps": text, "bootTimestamp": text})], 1_000_000
    )
    assert (row["put_text"], row["up_text"]) == ("–", "")


def test_the_cluster_s_figures_count_what_was_sent_once() -> None:
    figures = cluster_figures([process(), process(1), process(2, state={}, up=False)])
    assert (figures.brokers, figures.processes, figures.reachable) == (1, 3, 2)
    assert (figures.put, figures.get, figures.disk) == (12.5, 6.0, 0.81)
    assert cluster_figures([]).disk is None


def test_a_disk_is_looked_at_before_brokers_refuse() -> None:
    assert [disk_look(share) for share in (None, 0.2, 0.75, 0.9)] == ["", "", "warn", "bad"]


def test_members_are_shown_where_there_are_several() -> None:
    member = {
        "number": 0, "address": "h:1", "role": "master", "is_alive": True, "is_in_sync": True,
        "epoch": 3, "behind_bytes": None, "behind_seconds": None,
    }  # fmt: skip
    slave = {**member, "number": 1, "role": "slave", "is_alive": False, "is_in_sync": False,
             "behind_bytes": 2_048, "behind_seconds": 65.0}  # fmt: skip
    alone = {"broker": "b", "members": [member]}
    rows = replica_rows([alone, {"broker": "a", "members": [member, slave]}])
    assert [row["id"] for row in rows] == ["a:0:h:1", "a:1:h:1"]
    assert [row["behind_text"] for row in rows] == ["–", "2.0 KiB (1 min)"]
    assert (rows[1]["alive"], rows[1]["sync_look"]) == ("no", "bad")
