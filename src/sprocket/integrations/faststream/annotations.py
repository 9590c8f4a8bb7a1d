"""Types of parameters that FastStream fills in a handler."""

from __future__ import annotations

from typing import Annotated

from faststream import Context
from faststream.annotations import ContextRepo, Logger
from faststream.params import NoCast

from sprocket.integrations.faststream import broker, messages

__all__ = ["ContextRepo", "Logger", "NoCast", "RocketMQBroker", "RocketMQMessage"]

RocketMQMessage = Annotated[messages.RocketMQMessage, Context("message")]
RocketMQBroker = Annotated[broker.RocketMQBroker, Context("broker")]
