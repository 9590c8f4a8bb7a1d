"""What somebody may have rights to: clusters, topics and groups, by name or by the start of a name.
Pure. Source of the texts: Resource and ResourceType of RocketMQ 5.3.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from sprocket.base.errors import UsageError
from sprocket.base.suggestions import shown

_STAR = "*"


class ResourceKind(StrEnum):
    """What a resource is. The values are RocketMQ's words."""

    CLUSTER = "Cluster"
    NAMESPACE = "Namespace"
    TOPIC = "Topic"
    GROUP = "Group"


_KINDS = {kind.value.lower(): kind for kind in ResourceKind}


class Resource(NamedTuple):
    """One thing that a request is about.

    Attributes:
        name: in full; a group's without the prefix of its retry topic.
    """

    kind: ResourceKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


class ResourcePattern(NamedTuple):
    """The resources that an entry of a policy is about.

    Attributes:
        kind: None for resources of every kind.
        name: a name, or the start of one.
        is_prefix: whether it is the start.
    """

    kind: ResourceKind | None
    name: str
    is_prefix: bool

    @classmethod
    def parse(cls, text: str) -> ResourcePattern:
        """The pattern in a text: `*`, `Topic:*`, `Topic:orders-*` or `Topic:orders`.

        Raises:
            UsageError: it is none.
        """
        if text == _STAR:
            return cls(None, "", True)
        kind_text, colon, name = text.partition(":")
        kind = _KINDS.get(kind_text.lower())
        is_prefix = name.endswith(_STAR)
        name = name.removesuffix(_STAR)
        if kind is None or not colon or _STAR in name or not (name or is_prefix):
            raise UsageError(
                f"a resource is Cluster:NAME, Topic:NAME or Group:NAME, whose name may end with *, "
                f"or * alone; not {shown(text)}"
            )
        return cls(kind, name, is_prefix)

    def __str__(self) -> str:
        if self.kind is None:
            return _STAR
        return f"{self.kind}:{self.name}{_STAR if self.is_prefix else ''}"


#: The pattern of every resource.
EVERYTHING = ResourcePattern(None, "", True)
