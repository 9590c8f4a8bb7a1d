"""SECURITY.md says what is so: its configuration makes a closed broker, its lists are whole."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from sprocket.audit.config import AuditConfig
from sprocket.audit.reading import entries_in
from sprocket.base.config_files import ConfigFile, load
from sprocket.broker.config import BrokerConfig
from sprocket.nameserver.config import NameServerConfig
from sprocket.remoting.tls.settings import TlsConfig
from sprocket.store.config import StoreConfig
from tests.certificates import Authority
from tests.cli.parts import running_node, sprocket
from tests.dependencies import TOOLS, needed, outcome
from tests.test_tidy import ROOT

PAGE = (ROOT / "SECURITY.md").read_text()


def hardened() -> str:
    (block,) = re.findall(r"```properties\n(.*?)```", PAGE, re.DOTALL)
    return str(block)


def test_the_hardened_configuration_is_a_broker_conf_that_protects(
    tmp_path: Path, authority: Authority
) -> None:
    issued = authority.issue("hardened")
    text = hardened()
    for old, new in (
        ("bindAddress=0.0.0.0", "bindAddress=127.0.0.1"), ("broker.example", "127.0.0.1"),
        ("/etc/sprocket/server.pem", issued.certificate), ("/etc/sprocket/server.key", issued.key),
        ("/etc/sprocket/ca.pem", authority.path),
    ):  # fmt: skip
        assert old in text
        text = text.replace(old, new)
    loaded = load(
        [BrokerConfig, StoreConfig, TlsConfig, AuditConfig],
        file=ConfigFile("broker.conf", f"{text}listenPort=0\n"),
    )
    assert loaded.notes == []
    config = loaded.of(BrokerConfig)
    assert (config.authentication, config.authorization) == (True, True)
    configs = [*(loaded.of(kind) for kind in loaded.kinds), NameServerConfig(port=0)]
    tls = ["--tls-authorities", authority.path]
    admin = {"SPROCKET_CLIENT_ACCESS_KEY": "admin", "SPROCKET_CLIENT_SECRET_KEY": "long-and-random"}
    guessed = {**admin, "SPROCKET_CLIENT_SECRET_KEY": "guessed"}
    store = str(tmp_path / "store")
    with running_node(store, *configs) as names:

        def code(*words: str, **variables: str) -> int:
            return sprocket(*words, "-n", names, "--timeout", "5", **variables).code

        create = ("topic", "create", "orders")
        assert code(*create, **admin) != 0, "without TLS"
        assert code(*create, *tls) != 0, "without a signature"
        assert code(*create, *tls, **guessed) != 0, "with another key"
        assert code(*create, *tls, **admin) == 0
        assert code("send", "orders", "one coffee", *tls) != 0
        assert code("send", "orders", "one coffee", *tls, **admin) == 0
        assert code("send", "unknown", "one coffee", *tls, **admin) != 0
    seen = list(entries_in(Path(store) / "audit"))
    assert [each.user for each in seen if each.request == "UPDATE_AND_CREATE_TOPIC"] == ["admin"]


def test_the_hardened_configuration_passes_the_check_of_the_command_line(
    tmp_path: Path, authority: Authority
) -> None:
    issued = authority.issue("checked")
    file = tmp_path / "broker.conf"
    file.write_text(
        hardened()
        .replace("/etc/sprocket/server.pem", issued.certificate)
        .replace("/etc/sprocket/server.key", issued.key)
        .replace("/etc/sprocket/ca.pem", authority.path)
    )
    done = sprocket("config", "check", str(file))
    assert (done.code, done.err) == (0, "")


def test_all_dependencies_are_listed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lists = [project["dependencies"]] + [
        wanted for extra, wanted in project["optional-dependencies"].items() if extra not in TOOLS
    ]
    names = {re.match(r"[\w-]+", each)[0] for wanted in lists for each in wanted}  # type: ignore[index]
    section = PAGE[PAGE.index("## Dependencies") :]
    assert {name for name in names if f"`{name}`" not in section} == set()
    assert {"msgspec", "typer", "rich"} <= needed().keys()


def test_what_could_not_be_looked_up_is_no_success() -> None:
    good = {"name": "a", "version": "1", "vulns": []}
    unknown = {"name": "b", "skip_reason": "not found"}
    bad = {"name": "c", "version": "1", "vulns": [{"id": "X-1", "fix_versions": ["2"]}]}
    for given, code in (([good], 0), ([good, unknown], 3), ([unknown, bad, good], 1)):
        got, said = outcome(json.dumps({"dependencies": given}))
        assert got == code
        assert len(said) == len(given) - 1
