"""RocketMQ for FastStream: `pip install 'sprocketmq[faststream]'`.

FastStream's parts for brokers are its own internals, so the extra names the versions that fit.
"""

from faststream.annotations import ContextRepo, Logger
from faststream.middlewares import AckPolicy

from sprocket.integrations.faststream.annotations import RocketMQMessage
from sprocket.integrations.faststream.broker import (
    RocketMQBroker,
    RocketMQRoute,
    RocketMQRoutePublisher,
    RocketMQRouter,
)
from sprocket.integrations.faststream.commands import RocketMQResponse
from sprocket.integrations.faststream.testing import TestRocketMQBroker

__all__ = [
    "AckPolicy",
    "ContextRepo",
    "Logger",
    "RocketMQBroker",
    "RocketMQMessage",
    "RocketMQResponse",
    "RocketMQRoute",
    "RocketMQRoutePublisher",
    "RocketMQRouter",
    "TestRocketMQBroker",
]
