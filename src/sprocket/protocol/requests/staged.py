"""Batches that a broker keeps until their writer has them all: Sprocket's own requests.

A writer stages the batches of many processes, and then publishes those of the attempts that count.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from sprocket.message.topic import TEMPLATE
from sprocket.protocol.codes import OwnRequestCode
from sprocket.protocol.command import Header, Int, Long

#: Names of writers and attempts.
Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_.-]{1,128}$")]


class StageBatch(Header, kw_only=True):
    """Stores a batch where nobody reads it. Body: as that of a batch send.

    `topic`, `queue_id`: where its messages will go; `default_topic`, `default_topic_queue_nums`: as
    in a send, of a topic that this creates; `batch_id`: counts the writer's transactions, from 0
    on; `attempt`: of those who make one part of a transaction, one counts in the end; `number`:
    counts the requests of the attempt. One that was stored already is not stored again.
    """

    code: ClassVar[int] = OwnRequestCode.STAGE_BATCH

    topic: str
    default_topic: str = TEMPLATE
    default_topic_queue_nums: Int = 4
    queue_id: Int
    born_timestamp: Long
    writer: Name
    batch_id: Annotated[int, msgspec.Meta(ge=0, le=2**62)]
    attempt: Name
    number: Annotated[int, msgspec.Meta(ge=0, le=2**24)]


class Published(Header, kw_only=True):
    """The header of a successful reply to `PublishStaged`.

    `is_finished`: whether all messages are where their readers find them; otherwise ask again;
    `is_repeat`: whether this transaction was decided before, by an earlier request; `messages`: how
    many it has; `published`: how many of them are there.
    """

    is_finished: bool
    is_repeat: bool
    messages: Long
    published: Long


class PublishStaged(Header, kw_only=True):
    """Makes a transaction's messages visible, once. Body: `AttemptList`.

    The same request again, or another one for the same transaction, changes nothing.

    `topic`: one of its topics, if it has messages; `is_first`: whether the broker may know nothing
    of the writer; `keep_seconds`: how long the broker remembers it after this; `waits`: whether the
    reply comes when all is published, and not as soon as that is decided; `decided_by`: the broker
    that has decided, if it is another one; `checks_only`: nothing is decided, but refused what
    would be.
    """

    code: ClassVar[int] = OwnRequestCode.PUBLISH_STAGED
    reply: ClassVar[type[Header] | None] = Published

    topic: str | None = None
    writer: Name
    batch_id: Annotated[int, msgspec.Meta(ge=0, le=2**62)]
    is_first: bool = False
    keep_seconds: Annotated[int, msgspec.Meta(ge=60, le=30 * 86_400)] = 7 * 86_400
    waits: bool = True
    decided_by: Annotated[str, msgspec.Meta(max_length=255)] | None = None
    checks_only: bool = False
