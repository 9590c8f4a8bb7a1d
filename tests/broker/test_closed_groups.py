"""Users of a group of brokers that elect their master, through failovers."""

from __future__ import annotations

import asyncio

from sprocket.election.opening import ElectorRequest, key_elector
from sprocket.protocol.requests.account import DeleteUser
from sprocket.remoting.pool import Pool
from sprocket.testing.cluster import Machine
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.leased_keys import KeyServers
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.broker.accounts import INNER, REFUSED, ROOT_USER, allow, make_user
from tests.broker.parts import SUCCESS, another, pull_of
from tests.broker.scripted import LEASE, scripted


def test_a_new_master_knows_the_users_and_rights_of_the_one_before() -> None:
    async def main(network: Network) -> None:
        keys = KeyServers(network)
        await keys.start()

        def elect(machine: Machine) -> object:
            entropy = SeededEntropy(f"elector {machine.name} {machine.starts}")
            request = ElectorRequest(
                "", "c", "group", machine.disk, "/data", entropy, machine.clock
            )
            return key_elector(keys.client(), request)

        settings = {**INNER, "role": "SYNC_MASTER"}
        async with scripted(network, elect=elect, **settings) as running:  # type: ignore[arg-type]
            for asker in running.askers:
                asker.pool = Pool(signer=ROOT_USER)
            first = running.master
            root = running.asker(first)
            await root.create("T")
            await running.copied()
            ann, bob = await make_user(root, "ann"), await make_user(root, "bob")
            await allow(root, "ann", ("Topic:T", "Pub"))
            await allow(root, "bob", ("Topic:T", "Pub"))
            await root.call(DeleteUser(username="bob"))
            async with another(root, ann) as asker:
                await asker.send("T", b"1")
            running.machine(first).kill()
            second = await running.led(but=first)
            heir = running.asker(second)
            async with another(heir, ann) as asker, another(heir, bob) as gone:
                await asker.send("T", b"2")
                assert await asker.code(pull_of("T")) == REFUSED
                assert "check signature" in ((await gone.call(pull_of("T"))).remark or "")
            await heir.call(DeleteUser(username="ann"))
            await running.machine(first).start()
            await asyncio.sleep(LEASE)
            await running.copied()
            running.machine(second).kill()
            third = await running.led(but=second)
            async with another(running.asker(third), ann) as asker:
                assert "check signature" in ((await asker.call(pull_of("T"))).remark or "")
            assert await running.asker(third).code(pull_of("T")) == SUCCESS

    simulate(main)
