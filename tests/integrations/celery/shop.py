"""A small Celery application; its workers and its callers import it."""

from __future__ import annotations

import os
import time
from typing import Any

from celery import Celery

import sprocket.integrations.celery  # noqa: F401 - makes the scheme known

app = Celery("shop", broker=os.environ.get("SHOP_BROKER"), backend="rpc://")
app.conf.update(
    broker_connection_retry_on_startup=True,
    broker_transport_options={"visibility_timeout": 3},
    worker_prefetch_multiplier=1,
    task_reject_on_worker_lost=True,
)


@app.task
def add(x: int, y: int) -> int:
    return x + y


@app.task(acks_late=True)
def note(path: str, seconds: float) -> int:
    """Writes down which process began it, and when it ended."""
    with open(path, "a") as file:
        file.write(f"begun {os.getpid()}\n")
    time.sleep(seconds)
    with open(path, "a") as file:
        file.write("ended\n")
    return os.getpid()


@app.task(bind=True, max_retries=3)
def flaky(self: Any) -> int:
    if self.request.retries < 2:
        raise self.retry(countdown=0.5)
    return int(self.request.retries)
