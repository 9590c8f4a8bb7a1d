"""Orders of an invented shop, which the demo sends. Pure.

Bodies are JSON, except one: a parcel label, which is an image, because bodies may be any bytes.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator

from sprocket.base.ports import Entropy
from sprocket.message.message import Message

TOPIC = "orders"
REGIONS = ("africa", "americas", "asia", "europe")
#: Percent of orders by status. The status is the message's tag.
STATUSES = {"new": 35, "paid": 40, "shipped": 20, "returned": 5}
LABEL_TAG = "label"

_BY_PERCENT = [status for status, share in STATUSES.items() for _ in range(share)]


def orders(count: int, *, run: str, entropy: Entropy) -> Iterator[Message]:
    """Yields `count` messages; the second is the label, the others are orders.

    Args:
        run: a part of the keys, so that the keys of two runs differ.
    """
    for number in range(count):
        region = REGIONS[entropy.below(len(REGIONS))]
        if number == 1:
            yield _label(f"{run}-{number:05d}", region)
            continue
        yield _order(f"{run}-{number:05d}", region, entropy)


def _order(name: str, region: str, entropy: Entropy) -> Message:
    status = _BY_PERCENT[entropy.below(len(_BY_PERCENT))]
    items = 1 + entropy.below(5)
    cents = items * (199 + entropy.below(9_800))
    order = {"order": name, "customer": f"c-{entropy.below(500):03d}", "items": items}
    body = json.dumps({**order, "amount": cents / 100}, separators=(",", ":")).encode()
    return Message(TOPIC, body, tag=status, keys=[name], properties={"region": region})


def _label(name: str, region: str) -> Message:
    return Message(
        TOPIC,
        black_square(16),
        tag=LABEL_TAG,
        keys=[name],
        properties={"region": region, "content-type": "image/png"},
    )


def black_square(size: int) -> bytes:
    """A PNG image of a black square."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        crc = zlib.crc32(kind + data).to_bytes(4, "big")
        return len(data).to_bytes(4, "big") + kind + data + crc

    head = size.to_bytes(4, "big") * 2 + bytes([8, 0, 0, 0, 0])
    rows = bytes(1 + size) * size
    image = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + image
