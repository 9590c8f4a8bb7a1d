"""A broker for tests of `unittest`.

Tests in virtual time need only the decorator `virtual_time`.
"""

from __future__ import annotations

import os
import unittest
from typing import ClassVar
from unittest import mock

from sprocket.standalone import Config
from sprocket.testing.node_thread import NodeThread


class RocketMQTestCase(unittest.TestCase):
    """The tests of a class share a broker, which is started before the first of them.

    For async tests name it before `unittest.IsolatedAsyncioTestCase`::

        class OrdersTest(RocketMQTestCase, unittest.IsolatedAsyncioTestCase):
            async def test_an_order_is_sent(self):
                topic = await self.rocketmq.aio.topic("orders")

    Clients without an address of name servers connect to this broker too.

    Attributes:
        rocketmq_configs: settings of the broker, as for `sprocket.Standalone`.
        rocketmq: the broker: its `nameservers`, and topics of the test's own.
    """

    rocketmq_configs: ClassVar[tuple[Config, ...]] = ()
    rocketmq: ClassVar[NodeThread]

    @classmethod
    def setUpClass(cls) -> None:
        """Starts the broker."""
        super().setUpClass()
        cls.rocketmq = cls.enterClassContext(NodeThread(cls.rocketmq_configs))
        address = {"SPROCKET_NAMESERVERS": cls.rocketmq.nameservers}
        cls.enterClassContext(mock.patch.dict(os.environ, address))
