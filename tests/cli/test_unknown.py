"""Commands about a topic or a group that there is not: each says so, none says it is done."""

from __future__ import annotations

import pytest

from tests.cli.parts import sprocket

_ID = "7F0000010000C0FFEE0000000000002A"


@pytest.fixture(scope="module")
def known(node: str) -> str:
    """Address of a node that has a topic `known`, and a group `idle` that never consumed."""
    assert sprocket("topic", "create", "known", "-n", node).code == 0
    assert sprocket("group", "create", "idle", "-n", node).code == 0
    return node


@pytest.mark.parametrize(
    "words",
    [
        "topic route absent",
        "topic status absent",
        "topic volume absent",
        "topic delete absent --yes",
        "group reset idle absent --to first --yes",
        "group lag idle --topic absent",
        "group clone idle other --topic absent --yes",
        "message find absent key",
        "message find absent --since 1h",
        f"message find absent --id {_ID}",
        f"message show {_ID} --topic absent",
        f"message resend {_ID} --topic absent --yes",
        f"message consume-directly idle {_ID} --topic absent --yes",
        "consume absent --end",
        "consume absent --group idle",
        "group show absent",
        "group lag absent",
        "group lag absent --topic known",
        "group members absent",
        "group running absent client",
        "group producers absent",
        "group reset absent known --to first --yes",
        "group clone absent other --yes",
        "group delete absent --yes",
        "deadletters list absent",
        "deadletters resend absent --all --yes",
        f"message find known --id {_ID} --group absent",
        "filter list --group absent",
        "filter remove cheap --group absent --topic known --yes",
    ],
)
def test_a_command_says_that_there_is_no_such_thing(known: str, words: str) -> None:
    outcome = sprocket(*words.split(), "--nameserver", known)
    assert outcome.code == 1
    assert outcome.out == ""
    assert outcome.err.startswith("sprocket: ")
    assert "absent" in outcome.err
    assert outcome.err.count("\n") == 1


def test_nothing_is_copied_of_a_group_that_never_consumed(known: str) -> None:
    outcome = sprocket("group", "clone", "idle", "other", "--yes", "--nameserver", known)
    assert outcome.code == 2
    assert "idle never consumed anything" in outcome.err


def test_what_is_deleted_twice_is_unknown_the_second_time(known: str) -> None:
    for kind in ("topic", "group"):
        sprocket(kind, "create", "twice", "-n", known)
        first, second = (sprocket(kind, "delete", "twice", "--yes", "-n", known) for _ in range(2))
        assert (first.code, first.out) == (0, "twice: deleted on broker-a\n")
        assert (second.code, second.out) == (1, "")
