"""Users for a proxy are those of the brokers, a little while old at most."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from sprocket.admin import acls, users
from sprocket.admin.caller import Caller
from sprocket.auth.policies import PolicyEntry
from sprocket.protocol.signing import Signer
from sprocket.proxy.brokers.accounts import BrokerAccounts, InnerAccounts, KnownAccount
from sprocket.proxy.brokers.brokers import Brokers
from sprocket.proxy.brokers.calls import PoolCalls
from sprocket.proxy.config import ProxyConfig
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.statuses import CallRefused
from sprocket.remoting.pool import Pool
from sprocket.testing.cluster import Cluster
from tests.admin.closed import operate
from tests.broker.accounts import ROOT_USER

FRESH = 20.0


def looking(
    test: Callable[[Caller, BrokerAccounts, Cluster], Awaitable[None]], signer: Signer = ROOT_USER
) -> None:
    """Runs a test with the accounts of a proxy that has these keys."""

    async def main(caller: Caller, cluster: Cluster) -> None:
        async with Pool(signer=signer) as pool:
            names = cluster.nameserver_addresses
            brokers = Brokers(PoolCalls(pool), pool, names, ProxyConfig())
            accounts = BrokerAccounts(brokers, fresh_seconds=FRESH, users_max=100)
            await test(caller, accounts, cluster)
            await accounts.close()
            await brokers.close()

    operate(main, brokers=1)


async def found(accounts: BrokerAccounts, name: str) -> KnownAccount | None:
    outcome = accounts.account(name)
    return outcome if isinstance(outcome, KnownAccount) else await outcome


def test_a_user_is_asked_for_once_and_again_when_it_is_old() -> None:
    async def test(caller: Caller, accounts: BrokerAccounts, cluster: Cluster) -> None:
        await users.create(caller, "ann", "ann's")
        entry = PolicyEntry.of("Topic:orders", ["Pub"], "Allow")
        await acls.grant(caller, "ann", entry)
        known = await found(accounts, "ann")
        assert known is not None
        assert (known.user.password, known.policies.entries) == ("ann's", (entry,))
        assert accounts.account("ann") is known  # nobody was asked
        await users.update(caller, "ann", password="new")
        await acls.revoke(caller, "ann", None)
        await asyncio.sleep(FRESH)
        accounts.account("ann")  # asks in the background
        await asyncio.sleep(1)
        known = await found(accounts, "ann")
        assert known is not None
        assert (known.user.password, known.policies.entries) == ("new", ())
        await users.delete(caller, "ann")
        await asyncio.sleep(FRESH)
        accounts.account("ann")
        await asyncio.sleep(1)
        assert await found(accounts, "ann") is None

    looking(test)


def test_a_user_that_is_made_later_is_found_at_once() -> None:
    async def test(caller: Caller, accounts: BrokerAccounts, cluster: Cluster) -> None:
        assert await found(accounts, "ann") is None
        await users.create(caller, "ann", "ann's")
        assert await found(accounts, "ann") is not None

    looking(test)


def test_made_up_names_are_asked_for_a_few_at_a_time() -> None:
    async def test(caller: Caller, accounts: BrokerAccounts, cluster: Cluster) -> None:
        await found(accounts, "root")
        outcomes = await asyncio.gather(
            *(found(accounts, f"nobody{at}") for at in range(100)), return_exceptions=True
        )
        refused = [each for each in outcomes if isinstance(each, CallRefused)]
        assert {each.code for each in refused} == {pb.TOO_MANY_REQUESTS}
        assert 0 < len(refused) < 100
        assert isinstance(accounts.account("root"), KnownAccount)  # who is known is not asked for

    looking(test)


def test_keys_that_are_not_a_super_user_s_are_told_to_the_operator() -> None:
    async def test(caller: Caller, accounts: BrokerAccounts, cluster: Cluster) -> None:
        await users.create(caller, "proxy", "proxy's")
        entry = PolicyEntry.of("Cluster:*", ["Get"], "Allow")
        await acls.grant(caller, "proxy", entry)
        with pytest.raises(CallRefused, match="inner_keys") as refused:
            await found(accounts, "root")
        assert refused.value.code == pb.INTERNAL_SERVER_ERROR

    looking(test, Signer("proxy", "proxy's"))


def test_a_broker_in_the_process_has_its_users_at_once() -> None:
    async def test(caller: Caller, cluster: Cluster) -> None:
        accounts = InnerAccounts(cluster.brokers[0].server.accounts)
        assert accounts.account("ann") is None
        await users.create(caller, "ann", "ann's")
        known = accounts.account("ann")
        assert known is not None
        assert known.user.password == "ann's"
        await accounts.close()
        with pytest.raises(CallRefused):
            InnerAccounts(lambda: None).account("ann")

    operate(test, brokers=1)
