"""RocketMQ 4.9.8 at our broker with `plain_acl.yml`: its clients and its mqadmin."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sprocket.protocol.signing import Signer
from tests.compat.javaland import (
    QUICK_REBALANCE,
    JavaCallError,
    JavaDriver,
    java_command,
    launched,
    require_java,
    wait_until,
)
from tests.compat.sprocketland import SprocketNode

pytest.importorskip("yaml", reason="plain_acl.yml is read with PyYAML")
pytestmark = pytest.mark.java

LONG = pytest.mark.skipif(not os.environ.get("SPROCKET_LONG"), reason="long: SPROCKET_LONG=1")
ACCOUNTS = """
accounts:
- {accessKey: the-admin, secretKey: admin-secret, admin: true}
- accessKey: the-shop
  secretKey: shop-secret
  topicPerms: [Orders=PUB|SUB, Asked=PUB|SUB]
  groupPerms: [Shop=SUB, Repliers=SUB]
- {accessKey: nothing-allowed, secretKey: its-secret}
"""
SHOP = {"accessKey": "the-shop", "secretKey": "shop-secret"}
_POM = Path(__file__).parent / "acl4" / "pom.xml"
_JARS = Path(__file__).parent / "java" / "target" / "acl4"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SprocketNode]:
    require_java()
    home = tmp_path_factory.mktemp("home")
    (home / "conf").mkdir()
    (home / "conf" / "plain_acl.yml").write_text(ACCOUNTS)
    settings = {"broker.plain_acl": True, "broker.plain_acl_home": str(home)}
    with SprocketNode(tmp_path_factory.mktemp("node"), settings=settings) as running:
        yield running
        running.stop()


def test_its_clients_do_what_their_accounts_may(node: SprocketNode, tmp_path: Path) -> None:
    with JavaDriver("4.9.8", work=tmp_path, properties=QUICK_REBALANCE) as driver:
        driver.call("producer.start", group="P", namesrv=node.names, **SHOP)
        driver.call("producer.send", topic="Orders", text="one")
        driver.call("producer.sendBatch", topic="Orders", messages=[{"text": "three"}])
        driver.call(
            "producer.start", group="T", namesrv=node.names, name="T", transactional=True,
            instance="T", **SHOP,
        )  # fmt: skip
        driver.call("producer.sendInTransaction", name="T", topic="Orders", text="two")
        driver.call(
            "consumer.start", group="Shop", namesrv=node.names, topic="Orders",
            failTimes=1, **{"from": "first"}, **SHOP,
        )  # fmt: skip
        driver.wait_messages(6)  # each once more, by the retry topic
        driver.call(
            "producer.start", group="N", namesrv=node.names, name="N", instance="N",
            accessKey="nothing-allowed", secretKey="its-secret",
        )  # fmt: skip
        for name, topic, why in (
            ("P", "Secret", "defaultTopicPerm is DENY"),
            ("N", "Orders", "defaultTopicPerm is DENY"),
        ):
            named = {} if name == "P" else {"name": name}
            with pytest.raises(JavaCallError, match=why):
                driver.call("producer.send", topic=topic, text="no", **named)


def test_its_clients_ask_and_reply(node: SprocketNode, tmp_path: Path) -> None:
    asker = tmp_path / "asks"
    replier = tmp_path / "says"
    with (
        JavaDriver("4.9.8", work=asker, properties=QUICK_REBALANCE) as asks,
        JavaDriver("4.9.8", work=replier, properties=QUICK_REBALANCE) as says,
    ):
        asks.call("producer.start", name="asks", group="P", namesrv=node.names, **SHOP)
        asks.call("producer.send", name="asks", topic="Asked", text="a route")
        says.call("producer.start", name="says", group="S", namesrv=node.names, **SHOP)
        says.call(
            "consumer.start", name="listens", group="Repliers", namesrv=node.names, topic="Asked",
            reply="says", **{"from": "first"}, **SHOP,
        )  # fmt: skip

        def is_answered() -> bool:
            with contextlib.suppress(JavaCallError):
                answer = asks.call(
                    "producer.request", name="asks", topic="Asked", text="who?", timeoutMs=20_000
                )
                return bool(answer["reply"]["body"] == b"re:who?")
            return False

        wait_until(is_answered)


def jars() -> str:
    """The class path of mqadmin 4.9.8."""
    _JARS.parent.mkdir(parents=True, exist_ok=True)
    with (_JARS.parent / "acl4.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = _JARS / "done"
        if not done.exists() or done.read_text() != _POM.read_text():
            subprocess.run(
                ["mvn", "-q", "-B", "-f", str(_POM), "dependency:copy-dependencies",
                 f"-DoutputDirectory={_JARS}"],
                check=True,
            )  # fmt: skip
            done.write_text(_POM.read_text())
    return launched(f"{_JARS}/*", "4.9.8")


def mqadmin(node: SprocketNode, work: Path, signer: Signer, *words: str) -> str:
    """What 4.9.8's tool prints."""
    (work / "conf").mkdir(exist_ok=True)
    keys = f"accessKey: {signer.access_key}\nsecretKey: {signer.secret_key}\n"
    (work / "conf" / "tools.yml").write_text(keys)
    (work / "conf" / "logback_tools.xml").write_text("<configuration/>")
    command = java_command(work, ["-Xmx128m"], jars())
    done = subprocess.run(
        [*command, "org.apache.rocketmq.tools.command.MQAdminStartup", *words],
        env={**os.environ, "NAMESRV_ADDR": node.names},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=240,
    )
    return done.stdout


@LONG
def test_its_mqadmin_changes_accounts(node: SprocketNode, tmp_path: Path) -> None:
    admin, at = Signer("the-admin", "admin-secret"), ("-b", node.address)
    shop = Signer("the-shop", "shop-secret")
    made = ("updateAclConfig", *at, "-a", "newcomer", "-s", "new-secret", "-t", "Orders=PUB")
    assert "admin is false" in mqadmin(node, tmp_path, shop, *made)
    assert "success" in mqadmin(node, tmp_path, admin, *made, "-i", "DENY", "-u", "SUB")
    listed = mqadmin(node, tmp_path, admin, "clusterAclConfigVersion", *at)
    assert "plain_acl.yml" in listed, listed
    white = ("updateGlobalWhiteAddr", *at, "-g", "10.10.103.*,192.168.0.*")
    assert "success" in mqadmin(node, tmp_path, admin, *white)
    gone = ("deleteAclConfig", *at, "-a", "newcomer")
    assert "success" in mqadmin(node, tmp_path, admin, *gone)
    assert "success" not in mqadmin(node, tmp_path, admin, *gone)
    new = Signer("newcomer", "new-secret")
    assert "secret key" in mqadmin(node, tmp_path, new, "brokerStatus", *at)
