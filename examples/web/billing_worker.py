"""A worker that bills each order once, also when its message comes twice.

    SPROCKET_NAMESERVERS=127.0.0.1:9876 DATABASE=postgresql+psycopg://127.0.0.1/shop \\
        python examples/web/billing_worker.py

Run as many as you like: they share the queues. Ctrl-C and SIGTERM let the work that has begun end.
"""

import asyncio
import json
import os

import outbox
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine

import sprocket

bills = sa.Table(
    "bills",
    outbox.tables,
    sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
    sa.Column("of_order", sa.Text, nullable=False),
)


async def main() -> None:
    engine = create_async_engine(os.environ["DATABASE"])
    async with engine.begin() as connection:
        await connection.run_sync(outbox.tables.create_all)
    consumer = sprocket.PushConsumer("billing", start="first")

    @consumer.on("orders")
    async def bill(message: sprocket.StoredMessage) -> None:
        async with engine.begin() as connection:
            if await outbox.is_first(connection, "billing", message):
                order = json.loads(message.body)
                await connection.execute(bills.insert().values(of_order=order["id"]))

    try:
        async with consumer:
            await asyncio.Event().wait()
    finally:
        await engine.dispose()


if __name__ == "__main__":
    raise SystemExit(sprocket.run(main()))
