"""A small application of dramatiq; its workers and its callers import it."""

from __future__ import annotations

import os
import time

import dramatiq

from sprocket.integrations.dramatiq import QueueOptions, RocketMQDramatiqBroker

broker = RocketMQDramatiqBroker(options=QueueOptions(invisible_ms=2_000))


@dramatiq.actor(broker=broker)
def note(path: str) -> None:
    """Writes down which process began it, and when it ended. The first one does not end."""
    with open(path, "a+") as file:
        file.write(f"begun {os.getpid()}\n")
        file.seek(0)
        is_first = len(file.readlines()) == 1
    if is_first:
        time.sleep(30)
    with open(path, "a") as file:
        file.write("ended\n")
