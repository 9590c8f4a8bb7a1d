"""Users and policies are shown and changed, and no answer shows a password."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sprocket.admin.users import UserNotFound
from sprocket.base.errors import NoPermission, UsageError
from sprocket.broker.config import BrokerConfig
from sprocket.protocol.signing import Signer
from sprocket.testing.cluster import Cluster
from tests.broker.accounts import CLOSED, ROOT_USER
from tests.console.parts import Operating, operated

CLOSED_BROKER = BrokerConfig(**CLOSED)


def seen(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def test_a_user_and_what_it_may_do_from_beginning_to_end() -> None:
    async def test(do: Operating, cluster: Cluster) -> None:
        answers = []

        async def did(name: str, **asked: Any) -> Any:
            answers.append(await do(name, **asked))
            return answers[-1]

        await did("users.create", user="ann", password="ann's secret", dry_run=True)
        assert [each.user for each in (await did("users.list")).items] == ["root"]
        await did("users.create", user="ann", password="ann's secret")
        rows = (await did("users.list")).items
        assert [(each.user, each.kind, each.status) for each in rows] == [
            ("ann", "Normal", "enable"), ("root", "Super", "enable"),
        ]  # fmt: skip
        asked = {"user": "ann", "action": "Pub", "resource": "Topic:orders"}
        (verdict,) = (await did("policies.test", **asked)).verdicts
        assert not verdict.is_allowed
        rule = {"user": "ann", "resource": "Topic:orders", "actions": ["Pub", "Sub"]}
        await did("policies.grant", **rule, dry_run=True)
        assert (await did("policies.list")).items == []
        await did("policies.grant", **rule)
        (entry,) = (await did("policies.list")).items
        assert (entry.resource, entry.actions, entry.decision) == (
            "Topic:orders", ["Pub", "Sub"], "Allow",
        )  # fmt: skip
        assert (await did("policies.test", **asked)).verdicts[0].is_allowed
        (line,) = (
            await did("policies.revoke", user="ann", resource="Topic:orders", actions=["Pub"])
        ).changes
        assert (line.before, line.after) == (
            "Allow Pub,Sub on Topic:orders", "Allow Sub on Topic:orders",
        )  # fmt: skip
        await did("users.change", user="ann", password="another secret", is_enabled=False)
        assert (await did("users.list")).items[0].status == "disable"
        await did("users.delete", user="ann", dry_run=True)
        await did("users.delete", user="ann")
        assert [each.user for each in (await did("users.list")).items] == ["root"]
        for answer in answers:
            assert "secret" not in seen(answer)
            assert "root's" not in seen(answer)

    operated(test, broker=CLOSED_BROKER, signer=ROOT_USER)


def test_what_a_user_may_not_the_operations_may_not_either() -> None:
    async def test(do: Operating, cluster: Cluster) -> None:
        for name in ("users.list", "brokers.list", "policies.list", "settings.list"):
            if name == "brokers.list":
                (row,) = (await do(name)).items
                assert row.version is None
                continue
            with pytest.raises(NoPermission):
                await do(name)

    operated(test, broker=CLOSED_BROKER, signer=Signer("root", "guessed"))


def test_what_says_nothing_is_refused() -> None:
    async def test(do: Operating, cluster: Cluster) -> None:
        with pytest.raises(UsageError, match="needs a password"):
            await do("users.create", user="ann")
        with pytest.raises(UsageError, match="name what is to change"):
            await do("users.change", user="ann")
        with pytest.raises(UserNotFound):
            await do("users.delete", user="ann")
        with pytest.raises(UsageError, match="is not one of"):
            await do("policies.test", user="root", action="Fly", resource="Topic:a")

    operated(test, broker=CLOSED_BROKER, signer=ROOT_USER)
