"""The body of a request about staged batches."""

from __future__ import annotations

from typing import Annotated

import msgspec

from sprocket.protocol.bodies.body import Body, always

#: Of one transaction; far more than Spark has tasks.
ATTEMPTS_MAX = 65_536
#: At which one transaction has messages, besides the one that decides.
BROKERS_MAX = 256


class AttemptEntry(Body):
    """An attempt that counts, and how many requests it has made."""

    name: str
    requests: Annotated[int, msgspec.Meta(ge=0, le=2**24)] = always(0)


#: Those of one broker.
_Attempts = Annotated[list[AttemptEntry], msgspec.Meta(max_length=ATTEMPTS_MAX)]


class AttemptsElsewhere(Body):
    """What another broker publishes of the same transaction."""

    broker: str
    attempts: _Attempts = always([])


class AttemptList(Body):
    """Request body of `PublishStaged`: in the order in which their messages are published.

    `elsewhere`: what the writer publishes at other brokers once this one has decided. The reply to
    a transaction that was decided before has it as its body.
    """

    attempts: _Attempts = always([])
    elsewhere: Annotated[list[AttemptsElsewhere], msgspec.Meta(max_length=BROKERS_MAX)] = always([])
