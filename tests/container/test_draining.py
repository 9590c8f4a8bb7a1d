"""What remains in a broker that is to leave."""

from __future__ import annotations

import sprocket
from sprocket.container.draining import DEAD, DELAYED, NOBODYS, UNDECIDED, UNREAD, Remaining
from sprocket.message.topic import dead_letter_topic
from sprocket.remoting.pool import Pool
from tests.support import run


def test_everything_that_somebody_may_still_want_is_counted_until_it_is_gone() -> None:
    async def main() -> None:
        async with sprocket.Standalone(store=None) as node, Pool() as pool:
            servers = node.nameserver_address
            remaining = Remaining(pool.ask, node.broker_address)
            assert await remaining.counts() == {}
            async with sprocket.Producer("p", nameservers=servers) as producer:
                for number in range(3):
                    await producer.send(sprocket.Message("orders", b"%d" % number))
                assert await remaining.counts() == {NOBODYS: 3}
                await producer.send(sprocket.Message(dead_letter_topic("g"), b"x"))
                await producer.send(sprocket.Message("orders", b"later", delay_level=18))
                await producer.send(sprocket.Message("orders", b"by time", delay=3_600))
            counts = await remaining.counts()
            assert counts == {NOBODYS: 3, DEAD: 1, DELAYED: 2}
            async with sprocket.LitePullConsumer("g", nameservers=servers, start="first") as group:
                group.subscribe("orders")
                got = 0
                while got < 2:
                    got += len(await group.poll())
                await group.commit()
                while got < 3:
                    got += len(await group.poll())
                await group.poll(10)
                await group.commit()
            counts = await remaining.counts()
            assert counts == {DEAD: 1, DELAYED: 2}
            assert UNREAD not in counts
            assert UNDECIDED not in counts

    run(main())
