"""Notes to systemd about this process, for units of `Type=notify`.

The protocol is that of `sd_notify(3)`: lines `NAME=value` in one datagram to the socket that the
variable `NOTIFY_SOCKET` names; a name that begins with `@` is in Linux's abstract space.
"""

from __future__ import annotations

import logging
import os
import socket

logger = logging.getLogger(__name__)

VARIABLE = "NOTIFY_SOCKET"
READY = "READY=1"
STOPPING = "STOPPING=1"


def notify(*lines: str) -> bool:
    """Sends lines to systemd. Does nothing where it has not started this process.

    A note that cannot be sent is logged and no error: the server is none the worse for it.

    Returns:
        Whether they were sent.
    """
    place = os.environ.get(VARIABLE, "")
    if not place.startswith(("/", "@")) or not hasattr(socket, "AF_UNIX"):
        return False
    address = f"\0{place[1:]}" if place.startswith("@") else place
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto("\n".join(lines).encode(), address)
    except OSError as error:
        logger.warning("systemd does not take notes at %s: %s", place, error)
        return False
    return True


def status(text: str) -> str:
    """The line with the text that `systemctl status` shows."""
    return f"STATUS={' '.join(text.split())}"
