"""RocketMQ for Apache Airflow: messages of a topic start DAGs.

`pip install 'sprocketmq[airflow]'` beside Airflow 3 is enough: Airflow finds `get_provider_info` by
an entry point, and so the scheme `rocketmq` of `MessageQueueTrigger`.
"""

from __future__ import annotations

from typing import Any


def get_provider_info() -> dict[str, Any]:
    """What Airflow asks of each provider."""
    return {
        "package-name": "sprocketmq",
        "name": "RocketMQ",
        "description": "Messages of RocketMQ's topics start DAGs.",
        "triggers": [
            {
                "integration-name": "RocketMQ",
                "python-modules": ["sprocket.integrations.airflow.trigger"],
            }
        ],
        "queues": ["sprocket.integrations.airflow.queue.RocketMQMessageQueueProvider"],
    }
