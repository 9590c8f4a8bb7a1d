"""Celery and kombu on RocketMQ: importing this makes `sprocket+rocketmq://` known to them.

import sprocket.integrations.celery
app = Celery("shop", broker="sprocket+rocketmq://127.0.0.1:9876", backend="rpc://")

Kombu finds transports by a table of names, or by `broker_transport`; it takes no module from a URL,
and asks no entry points.
"""

from __future__ import annotations

from kombu.transport import TRANSPORT_ALIASES

from sprocket.integrations.celery.transport import Transport

__all__ = ["Transport"]

_PATH = "sprocket.integrations.celery:Transport"
#: Kombu splits a URL at the plus, and does not when it goes on to the next of several.
TRANSPORT_ALIASES.update({"sprocket": _PATH, "sprocket+rocketmq": _PATH})
