"""Transactions that nobody ends are found at their brokers, and those that are ended are not."""

from __future__ import annotations

import asyncio

from sprocket import Message
from sprocket.admin import transactions
from sprocket.admin.caller import Caller
from sprocket.admin.transactions import PendingTransaction
from sprocket.broker.config import BrokerConfig
from sprocket.client.transactional_producer import TransactionalProducer
from sprocket.remoting.pool import Pool
from sprocket.testing.cluster import Cluster
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network


def test_open_transactions_are_found_however_often_they_were_checked() -> None:
    async def main(network: Network) -> None:
        checks = BrokerConfig(transaction_timeout_ms=1_000, transaction_check_ms=5_000)
        cluster = Cluster(network, 0, broker=checks)
        await cluster.start()
        _, world = cluster.client("app")
        producer = TransactionalProducer(
            "app", check=None, nameservers=cluster.nameserver_addresses, world=world
        )
        async with Pool() as pool, producer:
            caller = Caller(pool, cluster.nameserver_addresses)

            async def pending() -> list[PendingTransaction]:
                return [each async for each in transactions.pending(caller)]

            assert await pending() == []
            for body in (b"open", b"ended", b"open too"):
                async with producer.transaction(Message("orders", body)) as transaction:
                    if body != b"ended":
                        transaction.leave_open()
            for _ in range(3):
                found = await pending()
                assert sorted(each.message.body for each in found) == [b"open", b"open too"]
                assert {each.topic for each in found} == {"orders"}
                await asyncio.sleep(6)
            assert {each.checks > 0 for each in await pending()} == {True}

    simulate(main)
