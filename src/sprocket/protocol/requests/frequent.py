"""Requests that make up most of the traffic: codecs prepare for these, and read any other too."""

from __future__ import annotations

from typing import Any

from sprocket.protocol.requests.pull import PullMessage
from sprocket.protocol.requests.send import SendMessage, SendMessageV2

FREQUENT: tuple[Any, ...] = (SendMessage, SendMessageV2, PullMessage)
