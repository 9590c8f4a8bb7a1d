"""Users, policies and audit entries as rows."""

from __future__ import annotations

import msgspec

from sprocket.audit.entries import AuditEntry
from sprocket.console.operations.accounts import PermissionFacts, PolicyFacts, UserFacts
from sprocket.console.views import access


def test_what_is_switched_off_or_denied_is_marked() -> None:
    (user,) = access.user_rows(
        [UserFacts(broker="a", user="an\u202ene", kind="Super", status="disable")]
    )
    assert (user["user"], user["status_look"]) == ("an\\u{202e}ne", "bad")
    (policy,) = access.policy_rows(
        [PolicyFacts(broker="a", user="u", resource="Topic:*", actions=["Pub", "Sub"],
                     decision="Deny", networks=[])]
    )  # fmt: skip
    assert (policy["actions"], policy["decision_look"], policy["networks"]) == (
        "Pub, Sub", "bad", "any",
    )  # fmt: skip
    (verdict,) = access.verdict_rows([PermissionFacts(broker="a", is_allowed=True, why="Super")])
    assert (verdict["verdict"], verdict["verdict_look"]) == ("allowed", "good")


def test_the_newest_entry_of_the_audit_log_comes_first() -> None:
    entry = AuditEntry(
        time="2030-01-01T00:00:00.000Z", server="a", user="", address="h:1", client="",
        request="DELETE_TOPIC", code=215, named={"topic": "t", "queues": 3}, result=0,
    )  # fmt: skip
    failed = msgspec.structs.replace(entry, user="bob", result=16, remark="not allowed")
    rows = access.audit_rows([msgspec.to_builtins(each) for each in (entry, failed)])
    assert [(row["user"], row["result"]) for row in rows] == [
        ("bob", "not allowed"), ("nobody", "done"),
    ]  # fmt: skip
    assert rows[0]["named"] == "topic t, queues 3"
