"""The topic, and the consumer group, of a task queue. Pure.

Frameworks name queues freely, and RocketMQ allows few characters. So every other character is
written as in URLs (`celery@host.pidbox` becomes `celery%40host%2Epidbox`): no two queues share a
topic, and people can still read it. The group that consumes a topic has the topic's name.
"""

from __future__ import annotations

import hashlib
import re

#: RocketMQ's retry topic of a group that pops is `%RETRY%group_topic`, and a topic has at most 127
#: characters. Group and topic are the same text here, so this is the longest.
NAME_LENGTH_MAX = 59
_HASH_LENGTH = 20
_OTHER = re.compile(r"[^a-zA-Z0-9_-]")


def topic_of(queue: str, prefix: str = "") -> str:
    """The topic of a queue. A long name keeps its beginning, and a hash stands for the rest."""
    name = _OTHER.sub(_escaped, prefix + queue) or "%"
    if len(name) <= NAME_LENGTH_MAX:
        return name
    rest = hashlib.sha256(name.encode()).hexdigest()[:_HASH_LENGTH]
    return f"{name[: NAME_LENGTH_MAX - _HASH_LENGTH - 1]}-{rest}"


def tag_of(address: str) -> str:
    """The tag of mail for an address: a word of letters and digits, the same in every process."""
    return hashlib.sha256(address.encode()).hexdigest()[:24]


def _escaped(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found.group().encode("utf-8", "surrogatepass"))
