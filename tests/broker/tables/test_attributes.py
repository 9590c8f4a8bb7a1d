"""Attributes of topics."""

from __future__ import annotations

import pytest

from sprocket.base.errors import SystemFailure
from sprocket.broker.tables.attributes import altered, parse


def test_attributes_are_set_changed_and_taken_away() -> None:
    made = altered(None, parse("+message.type=FIFO,+queue.type=SimpleCQ"))
    assert made == {"message.type": "FIFO", "queue.type": "SimpleCQ"}
    assert altered(made, parse("+message.type=DELAY")) == {**made, "message.type": "DELAY"}
    assert altered(made, parse("-message.type")) == {"queue.type": "SimpleCQ"}
    assert altered({}, parse("+reserve.time=-1")) == {"reserve.time": "-1"}
    assert altered(made, parse(None)) == made


@pytest.mark.parametrize(
    "text", ["message.type=FIFO", "+message.type", "-message.type=x", "+a=1,+a=2", "+a=1,-a"]
)
def test_what_is_no_list_of_changes_is_refused(text: str) -> None:
    with pytest.raises(SystemFailure):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "+nope=1",
        "+message.type=LOUD",
        "+reserve.time=soon",
        "+reserve.time=-2",
        "+queue.type=BatchCQ",
        "-message.type",
    ],
)
def test_unknown_names_and_values_are_refused(text: str) -> None:
    with pytest.raises(SystemFailure):
        altered({}, parse(text))
