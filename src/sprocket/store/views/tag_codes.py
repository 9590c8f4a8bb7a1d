"""Tag codes: what the entries of consume queues hold for filters.

It is the hash of a message's tag, unless its topic has another rule.

Source: CommitLog.checkMessageAndReturnSize of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from sprocket.message.hashing import tag_code
from sprocket.message.properties import TAGS

#: Gives the tag code of a record from the time when it was stored, ms, and its properties.
TagCodeOf = Callable[[int, Mapping[str, str]], int]
#: By topic, the rules of topics whose entries do not hold the hash of a tag.
TagCodes = Mapping[str, TagCodeOf]

TAGS_ONLY: TagCodes = MappingProxyType({})


def code_of(tag_codes: TagCodes, topic: str, stored_ms: int, properties: Mapping[str, str]) -> int:
    """The tag code of a record's queue entry."""
    own = tag_codes.get(topic)
    return own(stored_ms, properties) if own else tag_code(properties.get(TAGS))
