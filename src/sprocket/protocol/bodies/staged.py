"""The body of a request about staged batches."""

from __future__ import annotations

from typing import Annotated

import msgspec

from sprocket.protocol.bodies.body import Body, always

#: Of one transaction; far more than Spark has tasks.
ATTEMPTS_MAX = 65_536


class AttemptEntry(Body):
    """An attempt that counts, and how many requests it has made."""

    name: str
    requests: Annotated[int, msgspec.Meta(ge=0, le=2**24)] = always(0)


class AttemptList(Body):
    """Request body of `PublishStaged`: in the order in which their messages are published."""

    attempts: Annotated[list[AttemptEntry], msgspec.Meta(max_length=ATTEMPTS_MAX)] = always([])
