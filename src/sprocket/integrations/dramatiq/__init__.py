"""Dramatiq on RocketMQ: a broker whose queues are topics, consumed by pops."""

from __future__ import annotations

from sprocket.integrations.dramatiq.broker import RocketMQDramatiqBroker
from sprocket.integrations.queues.options import QueueOptions

__all__ = ["QueueOptions", "RocketMQDramatiqBroker"]
