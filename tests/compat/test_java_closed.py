"""RocketMQ's clients and mqadmin at our closed broker, and what RocketMQ's own broker refuses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sprocket.auth.needs import RULES, needs_of
from sprocket.base.deadline import Deadline
from sprocket.base.errors import SprocketError
from sprocket.protocol.bodies import AclBody, PolicyBody, PolicyEntryBody, UserBody
from sprocket.protocol.codes import OwnRequestCode
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.account import CreateAcl, CreateUser, DeleteAcl
from sprocket.protocol.signing import Signer
from sprocket.remoting.pool import Pool
from tests.auth.test_needs import _all_headers
from tests.broker.test_closed import BODIES, FIELDS
from tests.compat.javaland import (
    QUICK_REBALANCE,
    JavaAdmin,
    JavaBroker,
    JavaCallError,
    JavaDriver,
    JavaNameServer,
    require_java,
)
from tests.compat.sprocketland import SprocketNode
from tests.support import run

pytestmark = pytest.mark.java

ADMIN = Signer("robot", "keepItQuiet")
SETTINGS = {
    "broker.authentication": True,
    "broker.authorization": True,
    "broker.first_user": '{"username":"robot","password":"keepItQuiet"}',
    "broker.transaction_timeout_ms": 1000,
    "broker.transaction_check_ms": 1000,
}
SHOP = {"accessKey": "shop", "secretKey": "shopsSecret"}
#: Seconds that a run of the tool may take.
_TOOL_S = 240.0


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SprocketNode]:
    """Our broker, which lets in whom it knows."""
    require_java()
    with SprocketNode(tmp_path_factory.mktemp("closed"), settings=SETTINGS) as running:
        yield running
        running.stop()


def tool(work: Path, names: str, keys: Signer | None) -> JavaAdmin:
    """The admin tool with the keys of its file."""
    (work / "conf").mkdir()
    if keys is not None:
        text = f"accessKey: {keys.access_key}\nsecretKey: {keys.secret_key}\n"
        (work / "conf" / "tools.yml").write_text(text)
    return JavaAdmin(work, {"rocketmq.home.dir": str(work), "rocketmq.namesrv.addr": names})


@pytest.fixture(scope="module")
def admin(
    closed: SprocketNode, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., str]]:
    """Runs the tool as the super user."""
    with tool(tmp_path_factory.mktemp("tool"), closed.names, ADMIN) as running:
        yield lambda *words: re.sub(r"[ \t]+", " ", running.run(*words, within=_TOOL_S))


def test_mqadmin_manages_users_and_policies(
    closed: SprocketNode, admin: Callable[..., str]
) -> None:
    at = ("-b", closed.address)
    assert "success" in admin("createUser", *at, "-u", "ann", "-p", "secret", "-t", "Normal")
    assert "already" in admin("createUser", *at, "-u", "ann", "-p", "other")
    shown = admin("getUser", *at, "-u", "ann")
    assert "ann" in shown
    assert "Normal" in shown
    assert "success" in admin("updateUser", *at, "-u", "ann", "-s", "disable")
    assert "disable" in admin("listUser", *at, "-f", "an")
    made = admin(
        "createAcl", *at, "-s", "User:ann", "-r", "Topic:a*,Group:g", "-a", "Pub,Sub",
        "-d", "Allow", "-i", "10.0.0.0/8",
    )  # fmt: skip
    assert "success" in made
    assert "success" in admin(
        "updateAcl", *at, "-s", "User:ann", "-r", "Group:g", "-a", "Get", "-d", "Deny"
    )
    listed = admin("listAcl", *at, "-s", "ann")
    assert "Topic:a*" in listed
    assert "10.0.0.0/8" in listed
    assert "Deny" in admin("getAcl", *at, "-s", "User:ann")
    assert "success" in admin("deleteAcl", *at, "-s", "User:ann", "-r", "Group:g")
    assert "Group:g" not in admin("getAcl", *at, "-s", "User:ann")
    assert "success" in admin("deleteUser", *at, "-u", "ann")
    assert "ann" not in admin("listUser", *at)
    assert "last super user" in admin("deleteUser", *at, "-u", "robot")
    assert "success" in admin(
        "createUser", "-n", closed.names, "-c", "DefaultCluster", "-u", "all", "-p", "x"
    )


def test_mqadmin_copies_users_with_their_passwords(
    closed: SprocketNode, admin: Callable[..., str], tmp_path: Path
) -> None:
    settings = {**SETTINGS, "broker.authorization": False}
    with SprocketNode(tmp_path / "second", settings=settings) as second:
        there = ("-f", closed.address, "-t", second.address)
        admin("createUser", "-b", closed.address, "-u", "cara", "-p", "hers")
        admin(
            "createAcl",
            "-b",
            closed.address,
            "-s",
            "User:cara",
            "-r",
            "*",
            "-a",
            "All",
            "-d",
            "Allow",
        )
        assert "success" in admin("copyUser", *there, "-u", "cara")
        assert "success" in admin("copyAcl", *there, "-s", "User:cara")
        with tool_of(tmp_path, second.names, Signer("cara", "hers")) as running:
            assert "cara" in running.run("listUser", "-b", second.address, within=_TOOL_S)
        second.stop()


def tool_of(work: Path, names: str, keys: Signer | None) -> JavaAdmin:
    folder = work / "tool"
    folder.mkdir()
    return tool(folder, names, keys)


@pytest.mark.parametrize("keys", [None, Signer("robot", "guessed")], ids=["no keys", "wrong keys"])
def test_mqadmin_without_the_right_keys_is_refused(
    closed: SprocketNode, tmp_path: Path, keys: Signer | None
) -> None:
    with tool_of(tmp_path, closed.names, keys) as running:
        printed = running.run("listUser", "-b", closed.address, within=_TOOL_S)
    assert "CODE: 16" in printed
    assert "not signed" in printed or "check signature failed" in printed


def test_javas_clients_send_consume_and_end_transactions_with_keys(
    closed: SprocketNode, admin: Callable[..., str], tmp_path: Path
) -> None:
    at = ("-b", closed.address)
    admin("updateTopic", *at, "-t", "Orders", "-r", "2", "-w", "2")
    admin("createUser", *at, "-u", "shop", "-p", "shopsSecret")
    admin("createAcl", *at, "-s", "User:shop", "-r", "Topic:Orders", "-a", "Pub,Sub", "-d", "Allow")
    admin("createAcl", *at, "-s", "User:shop", "-r", "Group:Shop", "-a", "Sub", "-d", "Allow")
    with JavaDriver(work=tmp_path, properties=QUICK_REBALANCE) as driver:
        driver.call("producer.start", group="P", namesrv=closed.names, **SHOP)
        driver.call("producer.send", topic="Orders", text="one")
        driver.call(
            "producer.start", group="T", namesrv=closed.names, name="T", transactional=True,
            instance="T", **SHOP,
        )  # fmt: skip
        driver.call("producer.sendInTransaction", name="T", topic="Orders", text="two")
        driver.call(
            "producer.sendInTransaction", name="T", topic="Orders", text="three", local="unknown",
            check=["unknown", "commit"],
        )  # fmt: skip
        driver.call(
            "consumer.start", group="Shop", namesrv=closed.names, topic="Orders",
            failTimes=1, **{"from": "first"}, **SHOP,
        )  # fmt: skip
        bodies = [each["body"] for each in driver.wait_messages(6)]
        assert sorted(bodies) == [b"one", b"one", b"three", b"three", b"two", b"two"]
        with pytest.raises(JavaCallError) as refused:
            driver.call("producer.send", topic="Secret", text="no")
        assert "16" in str(refused.value) or "permission" in str(refused.value)
        driver.call("producer.start", group="N", namesrv=closed.names, name="N", instance="N")
        with pytest.raises(JavaCallError, match="not signed"):
            driver.call("producer.send", name="N", topic="Orders", text="no")


# What RocketMQ's broker refuses.

PACKAGE = "org.apache.rocketmq.auth."
JAVA_SETTINGS = {
    "authenticationEnabled": True,
    "authenticationProvider": f"{PACKAGE}authentication.provider.DefaultAuthenticationProvider",
    "authenticationMetadataProvider": (
        f"{PACKAGE}authentication.provider.LocalAuthenticationMetadataProvider"
    ),
    "authorizationEnabled": True,
    "authorizationProvider": f"{PACKAGE}authorization.provider.DefaultAuthorizationProvider",
    "authorizationMetadataProvider": (
        f"{PACKAGE}authorization.provider.LocalAuthorizationMetadataProvider"
    ),
    "initAuthenticationUser": '{"username":"robot","password":"keepItQuiet"}',
    "innerClientAuthenticationCredentials": '{"accessKey":"robot","secretKey":"keepItQuiet"}',
}
#: Codes whose requests RocketMQ's broker lets pass for a user without any right.
PASS_THERE = {
    18, 21, 25, 26, 28, 43, 45, 46, 60, 61, 200, 201, 225, 305, 306, 316, 324, 325, 329, 361, 400,
    401, 402, 513, 907, 1007, 2004, 200056, 200151,
}  # fmt: skip
#: Codes whose requests need other rights there: a message by its id, the topic that is named.
OTHER_RIGHTS = {33}
CODES = sorted(code for code in RULES if code not in set(OwnRequestCode))


class Raw:
    """A request of any code, with all that its header must have."""

    reply = None

    def __init__(self, code: int) -> None:
        self.code = code

    def to_fields(self) -> dict[str, str]:
        found = {**FIELDS, "topicFilterType": "SINGLE_TAG"}
        for kind in _all_headers(Header):
            if getattr(kind, "code", None) == self.code:
                for field in msgspec.structs.fields(kind):
                    text = "x" if field.type in (str, str | None) else "0"
                    text = "false" if field.type in (bool, bool | None) else text
                    found.setdefault(field.encode_name, text)
        return found


async def is_refused(pool: Pool, address: str, code: int) -> bool | None:
    """Whether the request is refused for want of rights; None if nobody serves it there."""
    header: Any = Raw(code)
    body = BODIES.get(code, b"")
    try:
        reply = await pool.call(address, header, body=body, deadline=Deadline.after(3))
    except SprocketError:
        return False  # it is held, has no reply, or ends the connection
    text = reply.remark or ""
    if reply.code == 3:
        return None
    return reply.code == 16 and ("permission" in text or "authoriz" in text)


def test_each_request_is_refused_there_as_here_but_for_what_is_listed(tmp_path: Path) -> None:
    require_java()

    async def compare(address: str) -> tuple[set[int], set[int]]:
        passes, others, unknown = set(), set(), set()
        async with Pool(signer=ADMIN) as root, Pool(signer=Signer("ann", "ann's")) as pool:

            async def done(header: Header, body: bytes = b"") -> None:
                deadline = Deadline.after(60)
                reply = await root.call(address, header, body=body, deadline=deadline)
                assert reply.code == 0, reply.remark

            await done(CreateUser(username="ann"), UserBody(password="ann's").encode())
            nothing = [PolicyEntryBody(resource="Topic:no", actions=["Pub"], decision="Allow")]
            acl = AclBody(policies=[PolicyBody(entries=nothing, policy_type="Custom")])
            await done(CreateAcl(subject="User:ann"), acl.encode())
            for code in CODES:
                if (refused := await is_refused(pool, address, code)) is False:
                    passes.add(code)
                if refused is None:
                    unknown.add(code)
            for code in set(CODES) - unknown:
                needs = needs_of(
                    Command(code, source=Raw(code).to_fields(), body=BODIES.get(code, b"")),
                    "DefaultCluster",
                )
                if not needs:
                    continue
                acl.policies[0].entries = [
                    PolicyEntryBody(
                        resource=str(each.resource), actions=list(each.actions), decision="Allow"
                    )
                    for each in needs
                ]
                await done(CreateAcl(subject="User:ann"), acl.encode())
                if await is_refused(pool, address, code):
                    others.add(code)
                await done(DeleteAcl(subject="User:ann"))
                acl.policies[0].entries = nothing
                await done(CreateAcl(subject="User:ann"), acl.encode())
        return passes, others

    with (
        JavaNameServer(tmp_path) as servers,
        JavaBroker(tmp_path, servers.address, settings=JAVA_SETTINGS) as broker,
    ):
        passes, others = run(compare(broker.address))
    assert (passes, others) == (PASS_THERE, OTHER_RIGHTS)
