"""Users are kept by brokers, and by name servers that are closed."""

from __future__ import annotations

import pytest

from sprocket.admin import acls, users
from sprocket.admin.account_servers import account_servers
from sprocket.admin.caller import BrokersFailed, Caller
from sprocket.auth.policies import PolicyEntry
from sprocket.base.errors import NoPermission
from sprocket.nameserver.config import NameServerConfig
from sprocket.protocol.requests.route import RouteOfTopic
from sprocket.protocol.signing import Signer
from sprocket.remoting.pool import Pool
from sprocket.testing.cluster import Cluster
from tests.admin.closed import operate
from tests.broker.accounts import INNER

CLOSED = NameServerConfig(
    authentication=True,
    authorization=True,
    first_user=INNER["first_user"],
    inner_keys=INNER["inner_keys"],
)


def test_an_open_name_server_keeps_none() -> None:
    async def test(caller: Caller, cluster: Cluster) -> None:
        assert list(await account_servers(caller)) == ["broker-0", "broker-1"]
        assert list(await account_servers(caller, broker="broker-1")) == ["broker-1"]

    operate(test)


def test_a_closed_one_gets_each_user_too() -> None:
    async def test(caller: Caller, cluster: Cluster) -> None:
        names = sorted(f"name server {each}" for each in cluster.nameserver_addresses)
        assert sorted(await account_servers(caller)) == ["broker-0", *names]
        assert list(await account_servers(caller, cluster="DefaultCluster")) == ["broker-0"]
        await users.create(caller, "ann", "ann's")
        async with Pool(signer=Signer("ann", "ann's")) as pool:
            ann = Caller(pool, cluster.nameserver_addresses)
            for address in cluster.nameserver_addresses:
                with pytest.raises(NoPermission, match="needed"):
                    await ann.ask(address, RouteOfTopic(topic="TOPIC"))
        await acls.grant(caller, "ann", PolicyEntry.of("Cluster:*", ["Get"], "Allow"))
        async with Pool(signer=Signer("ann", "ann's")) as pool:
            ann = Caller(pool, cluster.nameserver_addresses)
            assert sorted(await account_servers(ann)) == ["broker-0", *names]

    operate(test, brokers=1, nameservers=2, nameserver=CLOSED, inner_keys=INNER["inner_keys"])


def test_one_that_does_not_answer_is_named_if_another_one_is_closed() -> None:
    async def test(caller: Caller, cluster: Cluster) -> None:
        gone = cluster.nameserver_addresses[1]
        await cluster.nameservers[1].stop()
        with pytest.raises(BrokersFailed, match=f"failed at name server {gone}"):
            await users.create(caller, "ann", "ann's")

    operate(test, brokers=1, nameservers=2, nameserver=CLOSED, inner_keys=INNER["inner_keys"])
