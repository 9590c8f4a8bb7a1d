"""A shop in FastAPI: an order and the message about it are committed together.

    SPROCKET_NAMESERVERS=127.0.0.1:9876 DATABASE=postgresql+psycopg://127.0.0.1/shop \\
        uvicorn --app-dir examples/web fastapi_shop:app

The producer lives as long as the application: each worker process makes its own when it starts, on
the loop that serves its requests, and closes it when it ends.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import outbox
import sqlalchemy as sa
from fastapi import FastAPI, Request
from pydantic import BaseModel
from sqlalchemy.ext.asyncio import create_async_engine

from sprocket import Message, Producer

orders = sa.Table(
    "orders",
    outbox.tables,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("what", sa.Text, nullable=False),
)


class Order(BaseModel):
    id: str
    what: str


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    engine = app.state.engine = create_async_engine(os.environ["DATABASE"])
    async with engine.begin() as connection:
        await connection.run_sync(outbox.tables.create_all)
    async with Producer("shop") as producer:
        app.state.producer = producer
        relay = asyncio.create_task(outbox.relay(engine, producer))
        yield
        relay.cancel()
        await asyncio.wait([relay])
    await engine.dispose()


app = FastAPI(lifespan=lifespan)


@app.post("/orders", status_code=201)
async def order(order: Order, request: Request) -> Order:
    """Both or neither: the order's row, and sooner or later its message."""
    body = json.dumps({"id": order.id, "what": order.what}).encode()
    async with request.app.state.engine.begin() as connection:
        await connection.execute(orders.insert().values(id=order.id, what=order.what))
        await outbox.put(connection, Message("orders", body, keys=[order.id]))
    return order


@app.post("/views/{page}", status_code=202)
async def viewed(page: str, request: Request) -> None:
    """Without a row that must agree, a message is sent at once, and awaited."""
    await request.app.state.producer.send(Message("views", page.encode()))
