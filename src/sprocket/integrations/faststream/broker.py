"""FastStream's broker for RocketMQ, and routers of it."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from fast_depends import dependency_provider
from faststream._internal.broker import BrokerUsecase
from faststream._internal.broker.router import ArgsContainer, BrokerRouter, SubscriberRoute
from faststream._internal.constants import EMPTY
from faststream._internal.context.repository import ContextRepo
from faststream._internal.di import FastDependsConfig
from faststream._internal.logger import DefaultLoggerStorage, make_logger_state
from faststream._internal.logger.logging import get_broker_logger
from faststream.message import gen_cor_id
from faststream.middlewares import AckPolicy
from faststream.response.publish_type import PublishType
from faststream.specification.schema import BrokerSpec

from sprocket.client.base.nameservers import nameserver_addresses
from sprocket.client.config import ConsumerConfig, ProducerConfig
from sprocket.integrations.faststream.clients import BrokerClients
from sprocket.integrations.faststream.commands import RocketMQPublishCommand, fields_of
from sprocket.integrations.faststream.configs import RocketMQBrokerConfig
from sprocket.integrations.faststream.messages import Delivery
from sprocket.integrations.faststream.producer import RocketMQProducer
from sprocket.integrations.faststream.registrator import RocketMQRegistrator

if TYPE_CHECKING:
    from fast_depends import Provider
    from fast_depends.dependencies import Dependant
    from fast_depends.library.serializer import SerializerProto
    from faststream._internal.basic_types import LoggerProto
    from faststream._internal.parser import CodecProto
    from faststream._internal.types import BrokerMiddleware, CustomCallable, IdGenerator


class _LogLines(DefaultLoggerStorage):
    """The form of log lines: topic, group, message."""

    def __init__(self) -> None:
        super().__init__()
        self._widths = {"topic": 4, "group": 4}
        self._level = logging.INFO

    def set_level(self, level: int) -> None:
        """Lines below this level are not written."""
        self._level = level

    def register_subscriber(self, params: dict[str, Any]) -> None:
        """Makes the columns wide enough for a subscriber."""
        for name, width in self._widths.items():
            self._widths[name] = max(width, len(params.get(name) or ""))

    def get_logger(self, *, context: ContextRepo) -> LoggerProto:
        """The logger, made at the first use."""
        found = self._get_logger_ref()
        if found:
            return found
        columns = " | ".join(f"%({name})-{width}s" for name, width in self._widths.items())
        made = get_broker_logger(
            name="rocketmq",
            default_context=dict.fromkeys(self._widths, ""),
            message_id_ln=10,
            fmt=f"%(asctime)s %(levelname)-8s - {columns} | %(message_id)-10s - %(message)s",
            context=context,
            log_level=self._level,
        )
        self._logger_ref.add(made)
        return made


_make_logger_state = partial(make_logger_state, default_storage_cls=_LogLines)


class RocketMQBroker(
    RocketMQRegistrator, BrokerUsecase[Delivery, BrokerClients, RocketMQBrokerConfig]
):
    """RocketMQ for FastStream.

        from faststream import FastStream
        from sprocket.integrations.faststream import RocketMQBroker

        broker = RocketMQBroker("127.0.0.1:9876", group="billing")
        app = FastStream(broker)

        @broker.subscriber("orders", tags="new")
        @broker.publisher("bills")
        async def bill(order: Order) -> Bill: ...

    Args:
        nameservers: `host:port`, several with `;` between them. None: the environment variable
            SPROCKET_NAMESERVERS, or else NAMESRV_ADDR.
        group: the consumer group of subscribers that name none, and the group of the producer.
        producer_config, consumer_config: timeouts, limits, keys and TLS of the clients.
        graceful_timeout: how long a stop waits for running handlers, seconds.

    The other arguments are those of FastStream's own brokers.
    """

    def __init__(
        self,
        nameservers: str | None = None,
        *,
        group: str = "",
        producer_config: ProducerConfig | None = None,
        consumer_config: ConsumerConfig | None = None,
        graceful_timeout: float | None = 15.0,
        decoder: CustomCallable | None = None,
        parser: CustomCallable | None = None,
        codec: CodecProto | None = None,
        dependencies: Sequence[Dependant] = (),
        middlewares: Sequence[BrokerMiddleware[Any, Any]] = (),
        routers: Iterable[RocketMQRegistrator] = (),
        ack_policy: AckPolicy = EMPTY,
        id_generator: IdGenerator = gen_cor_id,
        specification_url: str | None = None,
        description: str | None = None,
        logger: LoggerProto | None = EMPTY,
        log_level: int = logging.INFO,
        apply_types: bool = True,
        serializer: SerializerProto | None = EMPTY,
        provider: Provider | None = None,
        context: ContextRepo | None = None,
    ) -> None:
        self._nameservers = nameservers
        self._group = group
        self._configs = (producer_config, consumer_config)
        super().__init__(
            routers=routers,
            config=RocketMQBrokerConfig(
                group=group,
                producer=RocketMQProducer(parser, decoder),
                broker_middlewares=middlewares,
                broker_parser=parser,
                broker_decoder=decoder,
                broker_codec=codec,
                broker_dependencies=dependencies,
                logger=_make_logger_state(logger=logger, log_level=log_level),
                fd_config=FastDependsConfig(
                    use_fastdepends=apply_types,
                    serializer=serializer,
                    provider=provider or dependency_provider,
                    context=context or ContextRepo(),
                ),
                graceful_timeout=graceful_timeout,
                ack_policy=ack_policy,
                id_generator=id_generator,
                extra_context={"broker": self},
            ),
            specification=BrokerSpec(
                description=description,
                url=[specification_url or f"rocketmq://{nameservers or 'SPROCKET_NAMESERVERS'}"],
                protocol="rocketmq",
                protocol_version="5",
                tags=(),
                security=None,
            ),
        )

    async def _connect(self) -> BrokerClients:
        made = BrokerClients(self._nameservers, self._group or "faststream", *self._configs)
        await made.start()
        self.config.broker_config.connect(made)
        return made

    async def start(self) -> None:
        """Starts the producer, and joins the groups of all subscribers."""
        await self.connect()
        await super().start()

    async def stop(
        self,
        exc_type: type[BaseException] | None = None,
        exc_val: BaseException | None = None,
        exc_tb: TracebackType | None = None,
    ) -> None:
        """Leaves the groups once the running handlers have ended, and closes the producer."""
        await super().stop(exc_type, exc_val, exc_tb)
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
        self.config.broker_config.disconnect()

    async def ping(self, timeout: float | None = None) -> bool:
        """Whether a name server accepts connections within so many seconds (5 by default)."""
        if self._connection is None:
            return False
        for address in nameserver_addresses(self._nameservers, os.environ):
            host, _, port = address.rpartition(":")
            try:
                async with asyncio.timeout(timeout or 5.0):
                    _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
            except (OSError, TimeoutError):
                continue
            writer.close()
            return True
        return False

    async def publish(
        self,
        message: Any = None,
        topic: str = "",
        *,
        key: str | int | None = None,
        tag: str | None = None,
        keys: Sequence[str] | None = None,
        delay: timedelta | float | None = None,
        deliver_at: datetime | int | None = None,
        priority: int | None = None,
        headers: Mapping[str, str] | None = None,
        correlation_id: str | None = None,
        reply_to: str = "",
    ) -> Any:
        """Publishes a message.

        Args:
            message: the body: bytes, a text, or what the serializer writes as JSON.
            topic: where to.
            key: messages with one key go to one queue, in order.
            tag, keys, delay, deliver_at, priority: as in `sprocket.Message`.
            headers: user properties.
            correlation_id: what the consumer finds as such; by default a new one.
            reply_to: the topic to which what a handler returns is published.

        Returns:
            Where the broker stored it, a `sprocket.Sent`.
        """
        cmd = RocketMQPublishCommand(
            message,
            topic=topic,
            key=key,
            headers=headers,
            correlation_id=correlation_id or self.config.id_generator(),
            reply_to=reply_to,
            fields=fields_of(tag, keys, delay, deliver_at, priority),
            _publish_type=PublishType.PUBLISH,
        )
        return await self._basic_publish(cmd, producer=self.config.producer)

    async def publish_batch(  # type: ignore[override]
        self,
        *messages: Any,
        topic: str = "",
        key: str | int | None = None,
        tag: str | None = None,
        headers: Mapping[str, str] | None = None,
        correlation_id: str | None = None,
    ) -> Any:
        """Publishes many messages in few requests; returns where each is stored.

        Raises:
            SomeNotSent: some were not sent; the error has the results of all others.
        """
        if not messages:
            return []
        cmd = RocketMQPublishCommand(
            *messages,
            topic=topic,
            key=key,
            headers=headers,
            correlation_id=correlation_id or self.config.id_generator(),
            fields=fields_of(tag, None, None, None, None),
            _publish_type=PublishType.PUBLISH,
        )
        return await self._basic_publish_batch(cmd, producer=self.config.producer)

    async def request(  # type: ignore[override]
        self,
        message: Any = None,
        topic: str = "",
        *,
        timeout: float = 3.0,
        tag: str | None = None,
        keys: Sequence[str] | None = None,
        headers: Mapping[str, str] | None = None,
        correlation_id: str | None = None,
    ) -> Any:
        """Publishes a request and waits for what its handler returns, so many seconds at most.

        Raises:
            CallTimeout: nobody replied in time.
        """
        cmd = RocketMQPublishCommand(
            message,
            topic=topic,
            headers=headers,
            correlation_id=correlation_id or self.config.id_generator(),
            timeout=timeout,
            fields=fields_of(tag, keys, None, None, None),
            _publish_type=PublishType.REQUEST,
        )
        return await self._basic_request(cmd, producer=self.config.producer)


class RocketMQRoutePublisher(ArgsContainer):
    """A publisher of a `RocketMQRoute`: the arguments of `RocketMQBroker.publisher`."""

    def __init__(self, topic: str, **options: Any) -> None:
        super().__init__(topic, **options)


class RocketMQRoute(SubscriberRoute):
    """A handler for a router's `handlers`: the arguments of `RocketMQBroker.subscriber`."""

    def __init__(
        self,
        call: Any,
        topic: str,
        *,
        publishers: Iterable[RocketMQRoutePublisher] = (),
        **options: Any,
    ) -> None:
        super().__init__(call, topic, publishers=publishers, **options)


class RocketMQRouter(RocketMQRegistrator, BrokerRouter[Delivery, RocketMQBrokerConfig]):
    """Subscribers and publishers that become part of a broker with `include_router`.

    Args:
        prefix: of the names of all its topics.
        handlers: instead of decorators.
    """

    def __init__(
        self,
        prefix: str = "",
        handlers: Iterable[RocketMQRoute] = (),
        *,
        dependencies: Sequence[Dependant] = (),
        middlewares: Sequence[BrokerMiddleware[Any, Any]] = (),
        routers: Iterable[RocketMQRegistrator] = (),
        parser: CustomCallable | None = None,
        decoder: CustomCallable | None = None,
        include_in_schema: bool | None = None,
        ack_policy: AckPolicy = EMPTY,
    ) -> None:
        super().__init__(
            handlers=handlers,
            config=RocketMQBrokerConfig(
                prefix=prefix,
                ack_policy=ack_policy,
                broker_dependencies=dependencies,
                broker_middlewares=middlewares,
                broker_parser=parser,
                broker_decoder=decoder,
                include_in_schema=include_in_schema,
            ),
            routers=routers,
        )
