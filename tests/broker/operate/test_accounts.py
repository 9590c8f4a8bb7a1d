"""Users at a master and its slaves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest

from sprocket.protocol.bodies import ChangedState, UserBody
from sprocket.protocol.requests.account import (
    CreateUser,
    DeleteAcl,
    DeleteUser,
    UpdateUser,
    Users,
)
from sprocket.protocol.requests.replica import StateChanges
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.broker.accounts import (
    CLOSED,
    INNER,
    REFUSED,
    ROOT_USER,
    allow,
    make_user,
    play_closed,
)
from tests.broker.groups import BrokerGroup, group
from tests.broker.parts import SUCCESS, Asker, another, serving

SOON = 1.0


def play_group(
    test: Callable[[BrokerGroup, Asker, Asker], Awaitable[None]], **settings: object
) -> None:
    """Runs a test with the super user at the master and at a slave."""

    async def main(network: Network) -> None:
        async with group(network, **{**INNER, **settings}) as running:  # type: ignore[arg-type]
            master, slave = running.askers
            async with another(master, ROOT_USER) as root, another(slave, ROOT_USER) as there:
                await test(running, root, there)

    simulate(main)


async def names(asker: Asker) -> list[str]:
    reply = await asker.call(Users())
    assert reply.code == SUCCESS, reply.remark
    return [each["username"] for each in json.loads(bytes(reply.body))]


def test_users_and_policies_come_to_a_slave_which_checks_with_them() -> None:
    async def test(running: BrokerGroup, root: Asker, there: Asker) -> None:
        ann = await make_user(root, "ann")
        await allow(root, "ann", ("Cluster:*", "Get"))
        await asyncio.sleep(SOON)
        async with another(there, ann) as asker:
            assert await names(asker) == ["ann", "inner", "root"]
            await root.call(DeleteAcl(subject="User:ann"))
            await asyncio.sleep(SOON)
            assert await asker.code(Users()) == REFUSED
            await root.call(DeleteUser(username="ann"))
            await asyncio.sleep(SOON)
            assert "check signature" in ((await asker.call(Users())).remark or "")
        assert await names(there) == ["inner", "root"]

    play_group(test)


def test_a_slave_that_was_away_loses_the_users_that_its_master_has_lost() -> None:
    async def test(running: BrokerGroup, root: Asker, there: Asker) -> None:
        await make_user(root, "ann")
        await asyncio.sleep(SOON)
        await running.slaves[0].stop()
        await root.call(DeleteUser(username="ann"))
        await make_user(root, "bob")
        await running.slaves[0].start()
        await asyncio.sleep(20)
        async with another(Asker(running.slaves[0].server), ROOT_USER) as again:
            assert await names(again) == ["bob", "inner", "root"]

    play_group(test)


def test_a_change_that_is_sent_to_the_slave_is_made_at_the_master() -> None:
    async def test(running: BrokerGroup, root: Asker, there: Asker) -> None:
        body = UserBody(password="ann's").encode()
        for asker in (there, root, there):  # as mqadmin sends it, in whatever order
            reply = await asker.call(CreateUser(username="ann"), body)
            assert reply.code == SUCCESS, reply.remark
            await asyncio.sleep(SOON)
        assert await names(root) == await names(there) == ["ann", "inner", "root"]
        await allow(there, "ann", ("Cluster:*", "All"))
        await asyncio.sleep(SOON)
        super_user = UserBody(user_type="Super").encode()
        async with another(there, (await make_user(root, "bob"))) as bob:
            await allow(root, "bob", ("Cluster:*", "All"))
            await asyncio.sleep(SOON)
            assert await bob.code(UpdateUser(username="bob"), super_user) == REFUSED
            assert await bob.code(UpdateUser(username="ann"), body) == SUCCESS
        gone = await there.call(UpdateUser(username="nobody"), body)
        assert "there is no user 'nobody'" in (gone.remark or "")

    play_group(test)


def test_a_promoted_slave_checks_with_its_masters_users() -> None:
    async def test(running: BrokerGroup, root: Asker, there: Asker) -> None:
        await make_user(root, "ann")
        await root.create("T")
        await asyncio.sleep(SOON)
        await running.master.stop()
        await running.slaves[0].stop()
        await running.slaves[0].start()
        async with another(Asker(running.slaves[0].server), ROOT_USER) as again:
            assert await names(again) == ["ann", "inner", "root"]

    play_group(test)


def test_passwords_go_to_who_has_signed_as_a_super_user_only() -> None:
    ask = StateChanges(broker_id=7, origin="", since=-1, listing_at=-1, wait_ms=0)

    async def told(asker: Asker) -> ChangedState | int:
        reply = await asker.call(ask)
        return reply.code or ChangedState.decode(reply.body)

    async def test(nobody: Asker, root: Asker) -> None:
        ann = await make_user(root, "ann")
        await allow(root, "ann", ("*", "All"))
        async with another(nobody, ann) as asker:
            assert await told(asker) == REFUSED
        assert await told(nobody) == REFUSED
        state = await told(root)
        assert isinstance(state, ChangedState)
        row = state.accounts["ann"]
        assert row is not None
        assert row.user.password == "ann's"

    play_closed(test)

    async def main() -> None:
        async with (
            serving(first_user=CLOSED["first_user"]) as nobody,
            another(nobody, ROOT_USER) as root,
        ):
            for asker in (nobody, root):
                state = await told(asker)
                assert isinstance(state, ChangedState)
                assert not state.has_accounts
                assert not state.accounts

    simulate(lambda network: main())


def test_a_slave_of_an_open_master_keeps_the_users_that_it_has() -> None:
    async def main(network: Network) -> None:
        async with group(network, first_user=CLOSED["first_user"]) as running:
            master, slave = running.askers
            await master.call(CreateUser(username="ann"), UserBody(password="x").encode())
            await asyncio.sleep(SOON)
            assert await names(master) == ["ann", "root"]
            assert await names(slave) == ["root"]

    simulate(main)


@pytest.mark.parametrize("what", ["master", "keys"])
def test_a_slave_that_may_not_copy_says_so(what: str, caplog: pytest.LogCaptureFixture) -> None:
    async def test(running: BrokerGroup, root: Asker, there: Asker) -> None:
        body = UserBody(password="x").encode()
        if what == "master":
            await running.master.stop()
            reply = await there.call(CreateUser(username="ann"), body)
            assert reply.code != SUCCESS
        else:
            await root.call(UpdateUser(username="inner"), UserBody(password="other").encode())
            await asyncio.sleep(5)
            assert "no state is copied from the master" in caplog.text
            assert "check signature failed" in caplog.text

    play_group(test)


def test_the_log_goes_to_hosts_that_have_shown_the_keys_of_a_super_user() -> None:
    async def test(running: BrokerGroup, root: Asker, there: Asker) -> None:
        await root.create("T")
        await root.send("T", b"secret")
        await running.equal()  # the slave has it
        sender = running.master.server._parts.replication.sender
        assert sender is not None

        async def copied() -> bytes:
            try:
                reader, writer = await asyncio.open_connection(running.master.address, sender.port)
            except ConnectionResetError:
                return b""
            writer.write(bytes(8))
            try:
                async with asyncio.timeout(1):
                    return await reader.read()
            except TimeoutError:
                return b"more"
            finally:
                writer.close()

        assert await copied() == b"more"  # `root` has asked from here
        rights = running.master.server._parts.rights
        rights._trusted.clear()
        assert await copied() == b""
        assert rights.may_copy("10.9.9.9") is False
        await asyncio.sleep(2 * SOON)  # the slave asks for changes all the time
        assert rights.may_copy(running.slaves[0].address)

    play_group(test)
