"""Taskiq on RocketMQ: a broker whose queues are topics, consumed by pops."""

from __future__ import annotations

from sprocket.integrations.queues.options import QueueOptions
from sprocket.integrations.taskiq.broker import RocketMQTaskiqBroker

__all__ = ["QueueOptions", "RocketMQTaskiqBroker"]
