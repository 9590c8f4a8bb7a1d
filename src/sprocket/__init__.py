"""Apache RocketMQ's messaging in Python: name server, broker, client, Spark.

    import sprocket

    async with sprocket.Standalone() as node:
        async with sprocket.Producer("orders-app", nameservers=node.nameserver_address) as producer:
            await producer.send(sprocket.Message("orders", b"one coffee", tag="new"))

Each name is imported when it is first used, so `import sprocket` is cheap everywhere: it loads no
module of Python's own.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, whose import takes 0.1 s on a slow machine
if TYPE_CHECKING:
    from typing import Any

    from sprocket.base.errors import (
        CallTimeout,
        ClosedError,
        ConfigError,
        ConnectFailed,
        ConnectionLost,
        DirectoryInUse,
        HandleExpired,
        IllegalMessage,
        NoPermission,
        ProtocolError,
        ReplyError,
        RouteNotFound,
        SendFailed,
        SprocketError,
        StoreError,
        SubscriptionInvalid,
        TopicNotFound,
        TransportError,
        UsageError,
    )
    from sprocket.client.base.subscription import Later
    from sprocket.client.config import ConsumerConfig, LitePullConfig, ProducerConfig, PullConfig
    from sprocket.client.delivery.typed import typed
    from sprocket.client.delivery.typed_batches import typed_batch
    from sprocket.client.lite_pull_consumer import LitePullConsumer
    from sprocket.client.pop_config import SimpleConfig
    from sprocket.client.producer import Producer
    from sprocket.client.pull_consumer import PullConsumer, Pulled
    from sprocket.client.push_consumer import PushConsumer
    from sprocket.client.sending.many import SomeNotSent
    from sprocket.client.sending.sender import Sent
    from sprocket.client.simple_consumer import SimpleConsumer
    from sprocket.client.tracing import Tracer
    from sprocket.client.transactional_producer import Outcome, Transaction, TransactionalProducer
    from sprocket.clientcore.replies import PullStatus, SendStatus
    from sprocket.filter.python import PythonFilter
    from sprocket.message.message import Message, StoredMessage
    from sprocket.message.popped_message import PoppedMessage
    from sprocket.message.queue import QueueId
    from sprocket.runtime.process import run
    from sprocket.standalone import Standalone

__version__ = "0.1.0"

__all__ = [
    "CallTimeout",
    "ClosedError",
    "ConfigError",
    "ConnectFailed",
    "ConnectionLost",
    "ConsumerConfig",
    "DirectoryInUse",
    "HandleExpired",
    "IllegalMessage",
    "Later",
    "LitePullConfig",
    "LitePullConsumer",
    "Message",
    "NoPermission",
    "Outcome",
    "PoppedMessage",
    "Producer",
    "ProducerConfig",
    "ProtocolError",
    "PullConfig",
    "PullConsumer",
    "PullStatus",
    "Pulled",
    "PushConsumer",
    "PythonFilter",
    "QueueId",
    "ReplyError",
    "RouteNotFound",
    "SendFailed",
    "SendStatus",
    "Sent",
    "SimpleConfig",
    "SimpleConsumer",
    "SomeNotSent",
    "SprocketError",
    "Standalone",
    "StoreError",
    "StoredMessage",
    "SubscriptionInvalid",
    "TopicNotFound",
    "Tracer",
    "Transaction",
    "TransactionalProducer",
    "TransportError",
    "UsageError",
    "run",
    "typed",
    "typed_batch",
]

#: The module that defines each name; all names that are not listed are in `base.errors`.
_HOMES = {
    "ConsumerConfig": "sprocket.client.config",
    "Later": "sprocket.client.base.subscription",
    "LitePullConfig": "sprocket.client.config",
    "LitePullConsumer": "sprocket.client.lite_pull_consumer",
    "Message": "sprocket.message.message",
    "Outcome": "sprocket.client.transactional_producer",
    "PoppedMessage": "sprocket.message.popped_message",
    "Producer": "sprocket.client.producer",
    "ProducerConfig": "sprocket.client.config",
    "PullConfig": "sprocket.client.config",
    "PullConsumer": "sprocket.client.pull_consumer",
    "PullStatus": "sprocket.clientcore.replies",
    "Pulled": "sprocket.client.pull_consumer",
    "PushConsumer": "sprocket.client.push_consumer",
    "PythonFilter": "sprocket.filter.python",
    "QueueId": "sprocket.message.queue",
    "SendStatus": "sprocket.clientcore.replies",
    "Sent": "sprocket.client.sending.sender",
    "SomeNotSent": "sprocket.client.sending.many",
    "SimpleConfig": "sprocket.client.pop_config",
    "SimpleConsumer": "sprocket.client.simple_consumer",
    "Standalone": "sprocket.standalone",
    "StoredMessage": "sprocket.message.message",
    "Tracer": "sprocket.client.tracing",
    "Transaction": "sprocket.client.transactional_producer",
    "TransactionalProducer": "sprocket.client.transactional_producer",
    "run": "sprocket.runtime.process",
    "typed": "sprocket.client.delivery.typed",
    "typed_batch": "sprocket.client.delivery.typed_batches",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'sprocket' has no attribute '{name}'")
    from importlib import import_module

    value = getattr(import_module(_HOMES.get(name, "sprocket.base.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
