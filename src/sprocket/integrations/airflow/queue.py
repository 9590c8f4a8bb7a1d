"""The scheme `rocketmq` of Airflow's `MessageQueueTrigger`."""

from __future__ import annotations

from airflow.providers.common.messaging.providers.base_provider import BaseMessageQueueProvider
from airflow.triggers.base import BaseEventTrigger

from sprocket.integrations.airflow.trigger import RocketMQMessageTrigger


class RocketMQMessageQueueProvider(BaseMessageQueueProvider):
    """Gives Airflow the trigger for `MessageQueueTrigger(scheme="rocketmq", …)`."""

    scheme = "rocketmq"

    def trigger_class(self) -> type[BaseEventTrigger]:
        """The trigger, whose arguments are those of `MessageQueueTrigger` after the scheme."""
        return RocketMQMessageTrigger
