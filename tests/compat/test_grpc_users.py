"""RocketMQ's own gRPC clients with and without keys, at closed proxies of ours.

One proxy is in the process of its broker and uses its users; the other one, apart, asks the broker
for them.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from sprocket.admin import acls, groups, topic_changes, users
from sprocket.admin.caller import Caller
from sprocket.admin.topic_changes import TopicSettings
from sprocket.auth.policies import PolicyEntry
from sprocket.protocol.signing import Signer
from sprocket.remoting.pool import Pool
from tests.compat import clients5
from tests.compat.clients5 import Program
from tests.compat.sprocketland import SprocketNode, SprocketProxy

pytestmark = pytest.mark.process

UNAUTHORIZED = 40100
LANGUAGES = ("python", "go", *(["node"] if "SPROCKET_LONG" in os.environ else []))
ROOT = Signer("root", "root's")
KEYS = json.dumps({"accessKey": ROOT.access_key, "secretKey": ROOT.secret_key})
ANN = {"accessKey": "ann", "secretKey": "ann's"}
EVE = {"accessKey": "eve", "secretKey": "eve's"}


class Closed(NamedTuple):
    """A closed node, and its proxies by where they are."""

    names: str
    endpoints: dict[str, str | None]


async def _prepare(names: str) -> None:
    """Makes topics and groups, and users of whom ann may use them."""
    async with Pool(signer=ROOT) as pool:
        caller = Caller(pool, [names], timeout_ms=60_000)
        for name in ("ann", "eve"):
            await users.create(caller, name, f"{name}'s")
        for kind, actions in (("Topic", ["Pub", "Sub"]), ("Group", ["Sub"])):
            await acls.grant(caller, "ann", PolicyEntry.of(f"{kind}:kept_*", actions, "Allow"))
        for language in LANGUAGES:
            for where in ("inside", "apart"):
                name = f"kept_{language}_{where}"
                await topic_changes.create(caller, name, wanted=TopicSettings(2, 2))
                await groups.create(caller, name)


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Closed]:
    work = tmp_path_factory.mktemp("closed")
    password = work / "root.key"
    password.write_text(ROOT.secret_key)
    proxy = {
        "proxy.authentication": True,
        "proxy.authorization": True,
        "proxy.inner_keys": KEYS,
    }
    node = SprocketNode(work, grpc=True, words=["--user", f"root:{password}"])
    with node, SprocketProxy(work, node.names, settings=proxy) as apart:
        asyncio.run(_prepare(node.names))
        yield Closed(node.names, {"inside": node.endpoint, "apart": apart.endpoint})


@pytest.fixture(scope="module", params=LANGUAGES)
def program(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Program]:
    program = clients5.start(request.param, tmp_path_factory.mktemp("clients"))
    yield program
    program.stop()


@pytest.mark.parametrize("where", ["inside", "apart"])
def test_a_client_with_the_keys_of_a_user_who_may(
    closed: Closed, program: Program, where: str
) -> None:
    name = f"kept_{program.language}_{where}"
    words: dict[str, Any] = {"endpoint": closed.endpoints[where], "topic": name, **ANN}
    consumer = program.start(
        "receive", group=name, max=16, awaitMs=1_000, invisibleMs=30_000, expression="*", **words
    )
    with consumer:
        told = program.run("send", messages=[{"body": "one"}, {"body": "two"}], **words)
        assert [each["sent"] for each in told[:-1]] == ["one", "two"], told
        consumer.until(lambda: consumer.bodies() == ["one", "two"])
    assert all(each["acked"] for each in consumer.messages)
    assert consumer.refusals == []


@pytest.mark.parametrize("where", ["inside", "apart"])
@pytest.mark.parametrize(
    "keys",
    [{}, EVE, {**ANN, "secretKey": "wrong"}],
    ids=["without keys", "without rights", "with a wrong key"],
)
def test_a_client_that_may_not_is_told_so(
    closed: Closed, program: Program, where: str, keys: dict[str, str]
) -> None:
    name = f"kept_{program.language}_{where}"
    words: dict[str, Any] = {"endpoint": closed.endpoints[where], "topic": name, **keys}
    told = program.run("send", messages=[{"body": "no"}], **words)
    assert not any("sent" in each for each in told)
    refusals = [each for each in told if "failed" in each or "refused" in each]
    assert refusals, told
    # Python's client does not say why.
    assert {each["code"] for each in refusals if each.get("code")} <= {UNAUTHORIZED}, told
