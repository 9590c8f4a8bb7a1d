"""What is in the shop: forty orders, two of which are no JSON."""

from __future__ import annotations

import json
from typing import Any

ORDERS = 40
CORRUPT = {7, 20}


def body_of(number: int) -> bytes:
    if number in CORRUPT:
        return b"\xff\x00no json %d" % number
    return json.dumps({"order": f"o-{number}", "amount": number / 2}).encode()


def tag_of(number: int) -> str:
    return "paid" if number % 2 else "new"


def rows(frame: Any, *columns: str) -> list[tuple[Any, ...]]:
    """What a frame holds, sorted."""
    found = [tuple(row) for row in frame.select(*columns).collect()]
    return sorted(found, key=lambda row: [(one is not None, one) for one in row])


def topic_rows(session: Any, address: str, topic: str, *columns: str) -> list[tuple[Any, ...]]:
    """What lies in a topic."""
    read = session.read.format("rocketmq").options(namesrvAddr=address, subscribe=topic)
    schema = (
        "topic string, broker string, queue_id int, queue_offset bigint, key string, tag string, "
        "body binary, properties map<string,string>, flag int"
    )
    return rows(read.schema(schema).load(), *columns)
