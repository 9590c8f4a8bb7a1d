"""Listeners that other processes can import."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from sprocket import Later, StoredMessage


def write_down(message: StoredMessage) -> None:
    """Writes into the folder that the body names: which process had it, after how many returns."""
    text = f"{os.getpid()} {message.tag} {message.reconsume_times}\n"
    with (Path(message.body.decode()) / str(message.queue_offset)).open("a") as file:
        file.write(text)


def do_as_tagged(message: StoredMessage) -> Later | None:
    """Writes it down, then does what its tag says, the first time."""
    write_down(message)
    if message.reconsume_times:
        return None
    if message.tag == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif message.tag == "raise":
        raise Unpicklable(lambda: None)
    elif message.tag == "later":
        return Later(1)
    elif message.tag == "nonsense":
        return lambda: None  # type: ignore[return-value]
    return None


def take_long(message: StoredMessage) -> None:
    """Takes longer than any test."""
    write_down(message)
    time.sleep(600)


def count_bodies(messages: list[StoredMessage]) -> list[Later | None]:
    """Takes a batch; those that are tagged come again."""
    for message in messages:
        write_down(message)
    return [Later(1) if each.tag and not each.reconsume_times else None for each in messages]


def process_of(anything: object) -> int:
    """Which process calls it."""
    return os.getpid()


class Unpicklable(Exception):
    """An error that does not travel between processes."""
