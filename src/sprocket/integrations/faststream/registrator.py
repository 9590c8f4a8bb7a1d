"""`@broker.subscriber(…)` and `@broker.publisher(…)`, of brokers and of routers alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from faststream._internal.broker.registrator import Registrator
from faststream._internal.constants import EMPTY
from faststream._internal.endpoint.subscriber.call_item import CallsCollection
from faststream.exceptions import SetupError
from faststream.middlewares import AckPolicy

from sprocket.client.group.offsets import Start
from sprocket.client.popping.message_source import Mode
from sprocket.integrations.faststream.clients import GroupOptions
from sprocket.integrations.faststream.commands import fields_of
from sprocket.integrations.faststream.configs import (
    RocketMQBrokerConfig,
    RocketMQPublisherConfig,
    RocketMQPublisherSpecificationConfig,
    RocketMQSubscriberConfig,
    RocketMQSubscriberSpecificationConfig,
)
from sprocket.integrations.faststream.messages import Delivery
from sprocket.integrations.faststream.publisher import (
    RocketMQPublisher,
    RocketMQPublisherSpecification,
)
from sprocket.integrations.faststream.subscriber import (
    RocketMQSubscriber,
    RocketMQSubscriberSpecification,
)

if TYPE_CHECKING:
    from fast_depends.dependencies import Dependant
    from faststream._internal.parser import CodecProto
    from faststream._internal.types import BrokerMiddleware, CustomCallable


class RocketMQRegistrator(Registrator[Delivery, RocketMQBrokerConfig]):
    """What a broker and a router have in common."""

    def subscriber(  # type: ignore[override]
        self,
        topic: str,
        group: str = "",
        *,
        tags: str = "*",
        sql: str | None = None,
        start: Start = "last",
        ordered: bool = False,
        broadcasting: bool = False,
        mode: Mode = "pull",
        max_workers: int = 1,
        ack_policy: AckPolicy = EMPTY,
        no_reply: bool = False,
        dependencies: Sequence[Dependant] = (),
        parser: CustomCallable | None = None,
        decoder: CustomCallable | None = None,
        codec: CodecProto | None = None,
        persistent: bool = True,
        title: str | None = None,
        description: str | None = None,
        include_in_schema: bool = True,
    ) -> RocketMQSubscriber:
        """Gives the messages of a topic to the decorated function.

        Args:
            topic: its name.
            group: the consumer group; by default that of the broker.
            tags, sql: which messages: `"new || paid"`, `"amount > 5"`.
            start: where a group without offsets begins: `first`, `last` or a time.
            ordered: the messages of each queue one after the other; a failed one comes again
                before those behind it.
            broadcasting: every process gets every message.
            mode: `pull`, `pop`, or `broker` for what the broker says; see `sprocket.PushConsumer`.
            max_workers: how many messages are handled at the same time.
            ack_policy: what becomes of a message whose handler fails; by default it comes again.
            no_reply: nothing is sent to who asked.
            dependencies, parser, decoder, codec, persistent: FastStream's own.
            title, description, include_in_schema: for the AsyncAPI document.

        Subscribers with one group share its member, so the options of both must be the same.
        """
        outer = cast("RocketMQBrokerConfig", self.config)
        options = GroupOptions(start, ordered, broadcasting, mode, max_workers)
        config = RocketMQSubscriberConfig(
            _outer_config=outer,
            _ack_policy=ack_policy,
            no_reply=no_reply,
            topic=topic,
            group=group,
            tags=tags,
            sql=sql,
            options=options,
        )
        calls = CallsCollection[Delivery]()
        described = RocketMQSubscriberSpecificationConfig(
            topic=topic,
            title_=title,
            description_=description,
            include_in_schema=include_in_schema,
        )
        specification = RocketMQSubscriberSpecification(outer, described, calls)
        made = RocketMQSubscriber(config, specification, calls)
        super().subscriber(made, persistent=persistent)
        return made.add_call(
            parser_=parser or self._parser,
            decoder_=decoder or self._decoder,
            codec_=codec,
            dependencies_=dependencies,
        )

    def publisher(  # type: ignore[override]
        self,
        topic: str,
        *,
        key: str | int | None = None,
        tag: str | None = None,
        keys: Sequence[str] | None = None,
        delay: timedelta | float | None = None,
        deliver_at: datetime | int | None = None,
        priority: int | None = None,
        headers: Mapping[str, str] | None = None,
        persistent: bool = True,
        title: str | None = None,
        description: str | None = None,
        schema: Any = None,
        include_in_schema: bool = True,
    ) -> RocketMQPublisher:
        """Publishes what the decorated function returns, or what its `publish` is given.

        Args:
            topic: where to.
            key: messages with one key go to one queue, in order.
            tag, keys, delay, deliver_at, priority: as in `sprocket.Message`.
            headers: user properties of every message.
            persistent: FastStream's own.
            title, description, schema, include_in_schema: for the AsyncAPI document.
        """
        outer = cast("RocketMQBrokerConfig", self.config)
        config = RocketMQPublisherConfig(
            _outer_config=outer,
            topic=topic,
            key=key,
            headers=headers or {},
            fields=fields_of(tag, keys, delay, deliver_at, priority),
        )
        described = RocketMQPublisherSpecificationConfig(
            topic=topic,
            schema_=schema,
            title_=title,
            description_=description,
            include_in_schema=include_in_schema,
        )
        made = RocketMQPublisher(config, RocketMQPublisherSpecification(outer, described))
        super().publisher(made, persistent=persistent)
        return made

    def include_router(
        self,
        router: Registrator[Any, Any],
        *,
        prefix: str = "",
        dependencies: Sequence[Dependant] = (),
        middlewares: Sequence[BrokerMiddleware[Any, Any]] = (),
        include_in_schema: bool | None = None,
    ) -> None:
        """Takes over the subscribers and publishers of a router.

        Raises:
            SetupError: it is a router of another kind of broker.
        """
        if not isinstance(router, RocketMQRegistrator):
            raise SetupError(f"a RocketMQRouter is needed, not {type(router).__name__}")
        super().include_router(
            router,
            prefix=prefix,
            dependencies=dependencies,
            middlewares=middlewares,
            include_in_schema=include_in_schema,
        )
