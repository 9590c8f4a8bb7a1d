"""An outbox and a table of what was done, for SQLAlchemy: messages and rows that change together.

`put` writes a message into the table `outbox`, in the same database transaction as the rows that
it tells of; `relay` sends what stands there and deletes it. So a message is sent if, and only if,
its transaction was committed, also when the process or the broker dies in between. It may be sent
twice: the relay can die after a send, before its own commit. `is_first` at the consumer makes that
harmless.
"""

from __future__ import annotations

import asyncio
import logging
import uuid

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from sprocket import IllegalMessage, Message, Producer, SomeNotSent, StoredMessage, UsageError

#: The property that tells two messages of one order from one message that was sent twice.
ID = "outbox-id"
_BATCH = 256

tables = sa.MetaData()
outbox = sa.Table(
    "outbox",
    tables,
    sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
    sa.Column("topic", sa.Text, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("tag", sa.Text),
    sa.Column("keys", sa.JSON, nullable=False),
    sa.Column("properties", sa.JSON, nullable=False),
    sa.Column("refused", sa.Text),  # why it can never be sent; the relay leaves such rows alone
)
done = sa.Table(
    "done",
    tables,
    sa.Column("consumer", sa.Text, primary_key=True),
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False),
)


async def put(connection: AsyncConnection, message: Message) -> None:
    """Has a message sent if the transaction of this connection is committed."""
    await connection.execute(
        outbox.insert().values(
            topic=message.topic,
            body=message.body,
            tag=message.tag,
            keys=list(message.keys),
            properties={**message.properties, ID: str(uuid.uuid4())},
        )
    )


async def relay(engine: AsyncEngine, producer: Producer, *, pause_s: float = 0.5) -> None:
    """Sends what is put into the outbox, for ever.

    Every process may run one: the rows are locked, so one relay sends at a time, in the order of
    the ids, and another goes on when it dies.
    """
    while True:
        try:
            if await send_waiting(engine, producer) == _BATCH:
                continue
        except Exception:  # the database or the broker is away: the rows stay
            logging.getLogger(__name__).exception("the outbox was not sent; trying again")
        await asyncio.sleep(pause_s)


async def send_waiting(engine: AsyncEngine, producer: Producer) -> int:
    """Sends the oldest messages of the outbox. Returns how many it found."""
    oldest = sa.select(outbox).where(outbox.c.refused.is_(None)).order_by(outbox.c.id).limit(_BATCH)
    async with engine.begin() as connection:
        rows = (await connection.execute(oldest.with_for_update())).all()
        messages = [
            Message(row.topic, row.body, tag=row.tag, keys=row.keys, properties=row.properties)
            for row in rows
        ]
        unsent: dict[int, Exception] = {}
        if messages:
            try:
                await producer.send_many(messages, key_of=_first_key)
            except SomeNotSent as error:
                unsent.update(error.errors)
        sent = [row.id for place, row in enumerate(rows) if place not in unsent]
        await connection.execute(outbox.delete().where(outbox.c.id.in_(sent)))
        for place, error in unsent.items():
            if isinstance(error, IllegalMessage | UsageError):
                refused = outbox.update().where(outbox.c.id == rows[place].id)
                await connection.execute(refused.values(refused=str(error)))
    return len(sent)


def _first_key(message: Message) -> str | None:
    return next(iter(message.keys), None)


async def is_first(connection: AsyncConnection, consumer: str, message: StoredMessage) -> bool:
    """Whether this consumer does this message's work for the first time.

    Call it in the transaction that does the work: both are committed, or neither. Of two calls at
    the same time the second waits for the first's transaction.
    """
    id = message.value(ID) or message.message_id
    wanted = insert(done).values(consumer=consumer, id=id).on_conflict_do_nothing()
    return (await connection.execute(wanted.returning(done.c.id))).first() is not None
