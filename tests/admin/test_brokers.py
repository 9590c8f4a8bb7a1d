"""What an operator sees of brokers."""

from __future__ import annotations

from sprocket import Standalone
from sprocket.admin import brokers
from sprocket.admin.caller import Caller
from sprocket.base.deadline import Deadline
from sprocket.protocol import registration
from sprocket.protocol.bodies import RegisterBody
from sprocket.protocol.requests.route import RegisterBroker
from sprocket.remoting.pool import Pool
from tests.support import run


def test_every_process_is_shown_also_one_that_does_not_answer() -> None:
    async def story() -> None:
        async with Standalone() as node, Pool() as pool:
            ghost = RegisterBroker(
                broker_name="broker-z", broker_addr="127.0.0.1:1", cluster_name="c", broker_id=1
            )
            await pool.ask(
                node.nameserver_address,
                ghost,
                body=registration.encode(RegisterBody()),
                deadline=Deadline.after(5),
            )
            alive, dead = await brokers.processes(Caller(pool, [node.nameserver_address]))
            assert (alive.broker, alive.number, alive.is_reachable) == ("broker-a", 0, True)
            assert alive.address == node.broker_address
            assert (dead.broker, dead.number, dead.is_reachable) == ("broker-z", 1, False)
            assert dead.version is None

    run(story())
