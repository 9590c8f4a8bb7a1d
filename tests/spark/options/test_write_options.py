from __future__ import annotations

import pytest

from sprocket.base.errors import ConfigError
from sprocket.spark.options.write_options import write_options


def test_what_spark_adds_is_passed_over() -> None:
    options = write_options(
        {"namesrvaddr": "a:1", "topic": "orders", "checkpointLocation": "x", "queryname": "y"}
    )
    assert options.topic == "orders"
    assert options.queue_by == "turn"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "namesrvAddr is missing"),
        ({"topc": "orders"}, "did you mean topic"),
        ({"topic": "no topic"}, "option topic: The specified topic"),
        ({"group": ""}, "option group: "),
        ({"delayLevel": "19"}, "delayLevel must be at most 18"),
        ({"queueBy": "luck"}, "queueBy"),
        ({"transactionBrokers": " , "}, "names no broker"),
        ({"transactionBegin": "5"}, "transactionBegin goes with transactionBrokers"),
        ({"transactionBrokers": "a", "delayLevel": "1"}, "option delayLevel"),
        ({"idempotencyProperty": "TAGS"}, "idempotencyProperty"),
    ],
)
def test_wrong_options_are_refused_by_name(given: dict[str, str], said: str) -> None:
    place = {"namesrvAddr": "a:1"} if given else {}
    with pytest.raises(ConfigError, match=said):
        write_options({**place, **given})
