"""`sprocket acl import`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sprocket.base.errors import ConfigError, UsageError
from sprocket.cli.acl_import import plan_of
from tests.cli.closed import Command
from tests.cli.parts import sprocket
from tests.compat.plain_acl_cases import FILES

pytest.importorskip("yaml", reason="plain_acl.yml is read with PyYAML")

ONE = "accounts: [{accessKey: %s, secretKey: first-secret, defaultTopicPerm: PUB}]"


def named(path: Path) -> list[tuple[str, str]]:
    """The accounts of a plan, with the files that they are in."""
    return [(each.user, each.file) for each in plan_of(path).lines if "accessKey" in each.text]


def test_a_dry_run_shows_each_line_and_asks_nobody(tmp_path: Path) -> None:
    file = tmp_path / "plain_acl.yml"
    file.write_text(FILES["manual"])
    outcome = sprocket("acl", "import", str(file), "--dry-run", "--nameserver", "127.0.0.1:1")
    assert outcome.code == 0
    assert ["10", "RocketMQ", "topicA=DENY", "Deny"] in [x.split()[:4] for x in outcome.lines]
    assert "! 1 of" in outcome.out
    assert "12345678" not in outcome.out
    outcome = sprocket("acl", "import", str(file), "--dry-run", "--json")
    lines = [json.loads(line) for line in outcome.lines]
    assert {"line": 10, "user": "RocketMQ", "is_lost": False}.items() <= lines[3].items()


def test_users_are_made_with_their_rights(tmp_path: Path, closed: Command) -> None:
    file = tmp_path / "plain_acl.yml"
    file.write_text(ONE % "importer")
    outcome = closed("acl", "import", str(file), "--yes")
    assert outcome.lines[-1] == "importer: created on broker-a", outcome.err
    assert closed("acl", "test", "importer", "Pub", "Topic:anything").code == 0
    assert closed("acl", "test", "importer", "Sub", "Topic:anything").code == 1
    again = closed("acl", "import", str(file), "--yes", "--json")
    assert json.loads(again.lines[-1]) == {
        "broker": "broker-a",
        "user": "importer",
        "done": "unchanged",
    }
    closed("acl", "revoke", "importer", "--all", "--yes")
    assert closed("acl", "import", str(file), "--yes").lines[-1].startswith("importer: kept")
    outcome = closed("acl", "import", str(file), "--yes", "--replace")
    assert outcome.lines[-1] == "importer: replaced on broker-a"


def test_a_folder_is_read_as_rocketmq_reads_it(tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    (conf / "acl" / "more").mkdir(parents=True)
    (conf / "plain_acl.yml").write_text(ONE % "by-file")
    (conf / "acl" / "a.yaml").write_text(ONE % "by-folder")
    (conf / "acl" / "more" / "b.yml").write_text(ONE % "by-file")
    (conf / "acl" / "tools.yml").write_text("accessKey: mqadmin\n")
    (conf / "broker.yml").write_text("what: ever\n")
    assert named(conf) == [
        ("by-folder", "acl/a.yaml"),
        ("by-file", "acl/more/b.yml"),
        ("by-file", "plain_acl.yml"),
    ]
    assert [user for user, _ in named(conf / "acl")] == ["by-folder", "by-file"]
    assert len(plan_of(conf).users) == 2


def test_faults_name_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "plain_acl.yml"
    file.write_text("accounts:\n- {accessKey: x, secretKey: first-secret}\n")
    outcome = sprocket("acl", "import", str(file), "--dry-run")
    assert outcome.code == 2
    assert outcome.err.startswith(f"sprocket: {file}, line 2: accessKey")
    assert sprocket("acl", "import", str(tmp_path / "none.yml"), "--dry-run").code == 1
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"\.yml"):
        plan_of(tmp_path / "empty")
    with file.open("wb") as stream:
        stream.truncate(1 << 21)
    with pytest.raises(ConfigError, match="at most"):
        plan_of(file)
    for number in range(101):
        (tmp_path / "empty" / f"{number}.yml").touch()
    with pytest.raises(UsageError, match="more than 100"):
        plan_of(tmp_path / "empty")
