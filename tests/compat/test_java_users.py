"""Our commands for users and rights at RocketMQ's own broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.closed import ROOT, Command, commands_at
from tests.compat.javaland import JavaBroker, JavaNameServer, require_java

pytestmark = [pytest.mark.java, pytest.mark.process]

ANN = {"SPROCKET_CLIENT_ACCESS_KEY": "annette", "SPROCKET_CLIENT_SECRET_KEY": "ann-secret"}


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """Commands of the super user at RocketMQ's name server and broker."""
    require_java()
    work = tmp_path_factory.mktemp("java")
    inner = {"accessKey": "root", "secretKey": "root's"}
    settings = {
        "authenticationEnabled": True,
        "authorizationEnabled": True,
        "authenticationProvider": "org.apache.rocketmq.auth.authentication.provider."
        "DefaultAuthenticationProvider",
        "authenticationMetadataProvider": "org.apache.rocketmq.auth.authentication.provider."
        "LocalAuthenticationMetadataProvider",
        "authorizationProvider": "org.apache.rocketmq.auth.authorization.provider."
        "DefaultAuthorizationProvider",
        "authorizationMetadataProvider": "org.apache.rocketmq.auth.authorization.provider."
        "LocalAuthorizationMetadataProvider",
        "initAuthenticationUser": ROOT,
        "innerClientAuthenticationCredentials": json.dumps(inner),
        "authConfigPath": str(work / "auth"),
    }
    with (
        JavaNameServer(work) as names,
        JavaBroker(work, names.address, settings=settings),
    ):
        yield commands_at(names.address)


def test_users_and_rights_are_those_of_rocketmq_s_broker(java: Command) -> None:
    made = java("user", "create", "annette", SPROCKET_USER_PASSWORD="ann-secret")
    assert made.code == 0, made.err
    (user,) = map(json.loads, java("user", "show", "annette", "--json").lines)
    assert (user["kind"], user["status"]) == ("Normal", "enable")
    assert java("topic", "create", "orders").code == 0
    assert java("send", "orders", "x", **ANN).code == 1
    for actions in ("Pub", "Sub"):
        assert java("acl", "grant", "annette", "Topic:orders", actions).code == 0
    (entry,) = map(json.loads, java("acl", "show", "annette", "--json").lines)
    assert (entry["actions"], entry["resource"]) == (["Pub", "Sub"], "Topic:orders")
    assert java("send", "orders", "x", **ANN).code == 0
    assert java("acl", "test", "annette", "Pub", "Topic:orders").code == 0
    assert java("acl", "revoke", "annette", "Topic:orders", "Pub", "--yes").code == 0
    assert java("acl", "test", "annette", "Pub", "Topic:orders").code == 1
    assert java("send", "orders", "x", **ANN).code == 1
    assert java("acl", "revoke", "annette", "--all", "--yes").code == 0
    assert java("acl", "list", "--json").out == ""
    assert java("user", "update", "annette", "--disabled").code == 0
    assert java("user", "delete", "annette", "--yes").code == 0
    assert java("user", "delete", "annette", "--yes").code == 1
    names = {json.loads(line)["user"] for line in java("user", "list", "--json").lines}
    assert names == {"root"}


def test_accounts_of_4_x_are_imported_there(java: Command, tmp_path: Path) -> None:
    pytest.importorskip("yaml", reason="plain_acl.yml is read with PyYAML")
    file = tmp_path / "plain_acl.yml"
    file.write_text(
        "accounts:\n- accessKey: annette\n  secretKey: ann-secret\n  defaultTopicPerm: PUB|SUB\n"
        "  whiteRemoteAddress: 10.0.0.1-9\n  topicPerms: [closed=DENY, orders=PUB]\n"
    )
    for word in ("created", "unchanged"):
        done = java("acl", "import", str(file), "--yes")
        assert (done.code, done.lines[-1].split()[1]) == (0, word), done.err
    for topic, code in (("closed", 1), ("orders", 0), ("another", 0)):
        assert java("topic", "create", topic).code == 0
        assert java("send", topic, "x", **ANN).code == code
        assert java("acl", "test", "annette", "Pub", f"Topic:{topic}").code == code
    assert java("user", "delete", "annette", "--yes").code == 0
