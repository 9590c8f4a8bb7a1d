"""`sprocket user`."""

from __future__ import annotations

import json

from tests.cli.closed import Command

SECRET = {"SPROCKET_USER_PASSWORD": "ann's secret"}


def test_a_user_is_made_shown_changed_and_deleted(closed: Command) -> None:
    made = closed("user", "create", "ann", **SECRET)
    assert (made.code, made.out) == (0, "ann: created on broker-a\n"), made.err
    (shown,) = map(json.loads, closed("user", "show", "ann", "--json").lines)
    assert shown == {"user": "ann", "kind": "Normal", "status": "enable", "broker": "broker-a"}
    assert closed("user", "update", "ann", "--disabled").out == "ann: changed on broker-a\n"
    assert closed("user", "update", "ann", "--kind", "super").code == 0
    listed = closed("user", "list")
    assert listed.lines[0].split() == ["user", "kind", "status", "brokers"]
    assert ["ann", "Super", "disable", "broker-a"] in [each.split() for each in listed.lines]
    assert "secret" not in listed.out
    assert closed("user", "delete", "ann", "--yes").out == "ann: deleted on broker-a\n"
    gone = closed("user", "delete", "ann", "--yes")
    assert (gone.code, gone.err) == (1, "sprocket: no broker has a user ann\n")


def test_a_new_password_counts_at_once(closed: Command) -> None:
    closed("user", "create", "eve", "--super", **SECRET)
    changed = closed(
        "user", "update", "eve", "--password-file", "-", standard_input=b"new secret\n"
    )
    assert changed.code == 0, changed.err
    for secret, code in (("new secret", 0), ("ann's secret", 1)):
        keys = {"SPROCKET_CLIENT_ACCESS_KEY": "eve", "SPROCKET_CLIENT_SECRET_KEY": secret}
        assert closed("user", "list", **keys).code == code
    closed("user", "delete", "eve", "--yes")


def test_errors_say_what_to_change(closed: Command) -> None:
    outcome = closed("user", "update", "root")
    assert (outcome.code, outcome.out) == (2, "")
    assert "--password" in outcome.err
    assert closed("user", "update", "nobody", "--disabled").code == 1
    assert closed("user", "show", "nobody").code == 1
    unsigned = closed("user", "list", SPROCKET_CLIENT_ACCESS_KEY="", SPROCKET_CLIENT_SECRET_KEY="")
    assert unsigned.code == 1
    assert "not signed" in unsigned.err
    taken = closed("user", "create", "root", **SECRET)
    assert taken.code == 1
    assert "already" in taken.err


def test_a_consumer_without_the_right_ends_with_the_reason(closed: Command) -> None:
    closed("topic", "create", "orders")
    closed("user", "create", "tom", **SECRET)
    closed("acl", "grant", "tom", "Topic:orders", "Sub", "Pub")
    keys = {"SPROCKET_CLIENT_ACCESS_KEY": "tom", "SPROCKET_CLIENT_SECRET_KEY": "ann's secret"}
    assert closed("send", "orders", "one", **keys).code == 0
    for words in (("--group", "billing"), ("--group", "billing", "--pop")):
        refused = closed("consume", "orders", *words, **keys)
        assert refused.code == 1, refused.err
        assert "no permission to access Group:billing" in refused.err
    assert closed("consume", "orders", "--end", **keys).code == 1  # it reads as a group, too
    closed("acl", "grant", "tom", "Group:billing", "Sub")
    got = closed("consume", "orders", "--group", "billing", "--count", "1", "--raw", **keys)
    assert (got.code, got.out.split()[-1]) == (0, "one"), got.err
