"""A client in the same process, as brokers see it."""

from __future__ import annotations

import asyncio

from sprocket.base.deadline import Deadline
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.client import ConsumerRunning, IdsChanged
from sprocket.remoting.inner_peer import InnerPeer, command_of
from sprocket.testing.loop import simulate


def test_requests_to_it_are_calls() -> None:
    seen: list[Command] = []

    async def later() -> Reply:
        await asyncio.sleep(1)
        return Reply(body=[b"a", b"b"])

    def receive(command: Command) -> Reply | object | None:
        seen.append(command)
        return None if command.is_oneway else later()

    async def main() -> None:
        peer = InnerPeer("10.0.0.1:5", receive)  # type: ignore[arg-type]
        header = ConsumerRunning(consumer_group="g", client_id="c")
        reply = await peer.call(header, deadline=Deadline.after(5))
        assert (reply.code, reply.body, reply.is_response) == (0, b"ab", True)
        peer.send_oneway(IdsChanged(consumer_group="g"))
        assert [each.code for each in seen] == [307, 40]
        assert seen[0].read(ConsumerRunning).client_id == "c"

    simulate(lambda network: main())


def test_it_is_gone_once_it_is_closed() -> None:
    async def main() -> None:
        gone: list[object] = []
        peer = InnerPeer("10.0.0.1:5", lambda command: Reply())
        peer.on_close(gone.append)
        assert not peer.is_closed
        peer.close()
        peer.close()
        peer.on_close(gone.append)
        assert gone == [peer, peer]
        assert peer.is_closed
        assert not peer.is_full
        header = ConsumerRunning(consumer_group="g", client_id="c")
        assert (await peer.call(header, deadline=Deadline.after(5))).code == 1

    simulate(lambda network: main())


def test_a_reply_is_a_command() -> None:
    assert command_of(Reply(body=memoryview(b"x"), code=3, remark="no")).remark == "no"
