from __future__ import annotations

import json
import zlib

from sprocket.demo.orders import LABEL_TAG, REGIONS, STATUSES, TOPIC, black_square, orders
from sprocket.testing.entropy import SeededEntropy


def test_orders_are_the_same_for_the_same_seed_and_differ_between_runs() -> None:
    first = list(orders(50, run="a", entropy=SeededEntropy(1)))
    again = list(orders(50, run="a", entropy=SeededEntropy(1)))
    other = list(orders(50, run="b", entropy=SeededEntropy(1)))
    assert first == again
    keys = {key for message in [*first, *other] for key in message.keys}
    assert len(keys) == 100


def test_all_but_one_are_json_with_tag_key_and_region() -> None:
    made = list(orders(200, run="a", entropy=SeededEntropy(2)))
    (label,) = [message for message in made if message.tag == LABEL_TAG]
    made.remove(label)
    for message in made:
        assert message.topic == TOPIC
        assert message.tag in STATUSES
        assert message.properties["region"] in REGIONS
        order = json.loads(message.body)
        assert order["order"] == message.keys[0]
        assert order["amount"] > 0


def test_the_label_is_an_image() -> None:
    image = black_square(16)
    assert image[:8] == b"\x89PNG\r\n\x1a\n"
    start = image.index(b"IDAT") + 4
    size = int.from_bytes(image[start - 8 : start - 4], "big")
    assert zlib.decompress(image[start : start + size]) == bytes(17 * 16)
