"""`sprocket cluster`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sprocket.broker.config import BrokerConfig
from tests.cli.parts import eventually, running_node, sprocket
from tests.compat.javaland import free_broker_port
from tests.election.etcds import Etcd, needs_etcd

pytestmark = pytest.mark.process


def test_the_cluster_is_shown(node: str) -> None:
    outcome = sprocket("cluster", NAMESRV_ADDR=node)
    assert outcome.lines[0].split() == [
        "cluster", "broker", "number", "address", "reachable", "version",
    ]  # fmt: skip
    assert outcome.lines[1].split()[:3] == ["DefaultCluster", "broker-a", "0"]
    (process,) = map(json.loads, sprocket("cluster", "--json", "--nameserver", node).lines)
    assert process["is_reachable"] is True


def test_a_broker_without_elector_is_a_group_of_its_own(node: str) -> None:
    heading, row = sprocket("cluster", "status", NAMESRV_ADDR=node).lines
    assert heading.split()[:6] == ["cluster", "broker", "master", "address", "epoch", "alive"]
    assert row.split()[:3] == ["DefaultCluster", "broker-a", "0"]
    assert "1 of 1" in row
    (group,) = map(json.loads, sprocket("cluster", "status", "--json", "-n", node).lines)
    assert (group["broker"], group["elector"], group["master"]) == ("broker-a", None, 0)
    heading, row = sprocket("cluster", "members", "-n", node).lines
    assert heading.split()[:5] == ["cluster", "broker", "number", "address", "role"]
    assert "master" in row.split()
    (member,) = map(json.loads, sprocket("cluster", "members", "--json", "-n", node).lines)
    assert (member["broker"], member["role"], member["is_alive"]) == ("broker-a", "master", True)
    assert (member["behind_bytes"], member["log_end"]) == (0, member["confirmed"])


def test_what_cannot_be_elected_is_explained(node: str) -> None:
    outcome = sprocket("cluster", "elect", "broker-a", "-n", node)
    assert outcome.code == 2
    assert outcome.err == (
        "sprocket: broker broker-a has no elector: its settings say which one leads\n"
    )
    outcome = sprocket("cluster", "elect", "nowhere", "-n", node)
    assert (outcome.code, outcome.err) == (2, "sprocket: no broker nowhere is known\n")
    outcome = sprocket("cluster", "elect", "broker-a", "--unclean", "--yes", "-n", node)
    assert (outcome.code, outcome.err) == (
        2, "sprocket: an unclean election needs the number of the new master\n",
    )  # fmt: skip


def test_options_before_a_command_are_not_ignored_in_silence(node: str) -> None:
    outcome = sprocket("cluster", "--json", "status", NAMESRV_ADDR=node)
    assert (outcome.code, outcome.err) == (2, "sprocket: options stand behind `status`\n")


@needs_etcd
def test_a_group_that_elects_over_etcd(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp", reason="needs the extra `etcd`")
    etcd = Etcd(tmp_path)
    etcd.start()
    try:
        with running_node(
            str(tmp_path / "store"), BrokerConfig(elector=etcd.place, port=free_broker_port())
        ) as node:
            eventually(lambda: " 1 of 1 " in sprocket("cluster", "status", "-n", node).out)
            (group,) = map(json.loads, sprocket("cluster", "status", "--json", "-n", node).lines)
            assert (group["elector"], group["epoch"], group["master"]) == (etcd.place, 1, 1)
            assert group["in_sync"] == [1]
            outcome = sprocket("cluster", "elect", "broker-a", "--to", "2", "-n", node)
            assert outcome.code == 1
            assert "member 2 may not take over" in outcome.err
            outcome = sprocket("cluster", "elect", "broker-a", "--to", "1", "-n", node)
            assert outcome.out == "broker-a: member 1 is the master of epoch 1\n"
    finally:
        etcd.close()
