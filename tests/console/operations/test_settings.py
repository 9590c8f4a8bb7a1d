"""Settings are shown without secrets, compared and changed; filters and the audit log are shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from sprocket.audit.entries import AuditEntry
from sprocket.base.errors import InvalidParameter, NoPermission, UsageError
from sprocket.broker.config import BrokerConfig
from sprocket.testing.cluster import Cluster
from tests.broker.accounts import CLOSED, INNER, ROOT_USER
from tests.console.parts import Operating, operated


def test_a_setting_that_is_changed_at_one_broker_is_a_difference() -> None:
    async def test(do: Operating, cluster: Cluster) -> None:
        before = {each.setting for each in (await do("settings.differences")).differences}
        wanted = {"settings": {"fileReservedTime": "24"}, "broker": "broker-1"}
        tried = await do("settings.change", **wanted, dry_run=True)
        assert [(each.broker, each.before, each.after) for each in tried.changes] == [
            ("broker-1", "72", "24")
        ]
        assert "fileReservedTime" not in before
        await do("settings.change", **wanted)
        found = await do("settings.differences")
        values = {each.setting: each.values for each in found.differences}
        assert values["fileReservedTime"] == {"broker-0": "72", "broker-1": "24"}
        assert set(values) == before | {"fileReservedTime"}
        page = await do("settings.list", search="filereserved")
        assert [(each.broker, each.value) for each in page.items] == [
            ("broker-0", "72"), ("broker-1", "24"),
        ]  # fmt: skip
        with pytest.raises(InvalidParameter):
            await do("settings.change", settings={"noSuchSetting": "1"})

    operated(test, brokers=2)


def test_no_secret_is_shown() -> None:
    async def test(do: Operating, cluster: Cluster) -> None:
        page = await do("settings.list", limit=1_000)
        shown = {each.setting: each.value for each in page.items}
        assert shown["innerClientAuthenticationCredentials"] == "(secret)"
        assert not any("inner's" in each or "root's" in each for each in shown.values())
        report = await do(
            "settings.change", settings={"initAuthenticationUser": "ann's"}, dry_run=True
        )
        assert report.changes[0].after == "(secret)"

    operated(test, broker=BrokerConfig(**INNER), signer=ROOT_USER)


def test_filters_are_listed_and_one_that_is_not_there_is_not_removed() -> None:
    async def test(do: Operating, cluster: Cluster) -> None:
        assert (await do("filters.list")).filters == []
        asked = {"group": "billing", "topic": "orders", "name": "cheap"}
        assert (await do("filters.remove", **asked, dry_run=True)).changes == []
        with pytest.raises(NoPermission, match="filter_secret"):
            await do("filters.remove", **asked)

    operated(test)


def entry(number: int, user: str, result: int = 0) -> AuditEntry:
    time = f"2030-01-01T00:00:{number:02}.000Z"
    named = {"topic": f"orders{number % 2}"}
    return AuditEntry(time, "broker-a", user, "10.0.0.1:5", "", "CREATE", 17, named, result)


def test_the_newest_entries_of_the_audit_log_are_shown(tmp_path: Path) -> None:
    entries = [entry(each, "ann" if each % 3 else "bob", int(each % 5 == 0)) for each in range(30)]
    (tmp_path / "audit.jsonl").write_bytes(b"".join(each.encode() for each in entries))

    async def test(do: Operating, cluster: Cluster) -> None:
        shown = (await do("audit.list", limit=3)).entries
        assert [each["time"][17:19] for each in shown] == ["27", "28", "29"]
        shown = (await do("audit.list", user="bob", name="orders1", failed=True)).entries
        assert [each["time"][17:19] for each in shown] == ["15"]

    operated(test, audit_folder=tmp_path)


def test_the_audit_log_is_for_those_who_may_read_settings(tmp_path: Path) -> None:
    (tmp_path / "audit.jsonl").write_bytes(entry(1, "ann").encode())

    async def refused(do: Operating, cluster: Cluster) -> None:
        with pytest.raises(NoPermission):
            await do("audit.list")

    async def missing(do: Operating, cluster: Cluster) -> None:
        with pytest.raises(UsageError, match="--audit"):
            await do("audit.list")

    operated(refused, broker=BrokerConfig(**CLOSED), audit_folder=tmp_path)
    operated(missing)
