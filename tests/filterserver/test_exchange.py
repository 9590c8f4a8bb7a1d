from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.filterserver import exchange
from sprocket.filterserver.exchange import Fault, FilterInput, FrameInvalid, Verdicts

parts = st.lists(
    st.builds(
        FilterInput,
        st.integers(0, 2**62), st.integers(0, 2**62), st.integers(0, 2**62),
        st.integers(-(2**31), 2**31 - 1), st.binary(max_size=40), st.binary(max_size=40),
    ),
    max_size=5,
)  # fmt: skip


@given(st.text(max_size=20), st.integers(0, 1000), parts)
def test_a_batch_is_read_as_it_was_written(topic: str, queue: int, sent: list[FilterInput]) -> None:
    topic = topic.encode("utf-8", "replace").decode()
    got_topic, got_queue, got = exchange.batch_of(memoryview(exchange.batch(topic, queue, sent)))
    assert (got_topic, got_queue, list(got)) == (topic, queue, sent)


@given(st.lists(st.booleans(), min_size=1, max_size=9), st.integers(0, 9))
def test_verdicts_are_read_as_they_were_written(wanted: list[bool], judged: int) -> None:
    count = len(wanted)
    told = exchange.verdicts_of(memoryview(exchange.verdicts(wanted)), count)
    assert told == Verdicts(wanted, None)
    if judged < count:
        fault = Fault(3, 7, "ZeroDivisionError")
        written = memoryview(exchange.verdicts(wanted[:judged], fault))
        assert exchange.verdicts_of(written, count) == Verdicts(wanted[:judged], fault)


@given(st.binary(max_size=60), st.integers(0, 20))
def test_nonsense_is_garbled_or_fits_the_batch(raw: bytes, count: int) -> None:
    try:
        told = exchange.verdicts_of(memoryview(raw), count)
    except FrameInvalid:
        return
    assert len(told.wanted) == count or (len(told.wanted) < count and told.fault) or not count


def test_an_answer_that_says_more_than_it_was_asked_is_garbled() -> None:
    with pytest.raises(FrameInvalid):
        exchange.verdicts_of(memoryview(exchange.verdicts([True, True])), 1)
    with pytest.raises(FrameInvalid):
        exchange.verdicts_of(memoryview(exchange.verdicts([True])), 2)


def test_the_words_of_a_fault_are_one_short_line() -> None:
    fault = Fault(1, 2, "a\nb\x1b[31m\x00" + "x" * 10_000)
    told = exchange.verdicts_of(memoryview(exchange.verdicts([], fault)), 1).fault
    assert told is not None
    assert told.text.startswith("a b [31m x")
    assert len(told.text) <= exchange.FAULT_CHARACTERS_MAX
    assert str(Fault(1, 2, "x")) == "line 1, column 2: x"
    assert str(Fault(1, 0, "x")) == "line 1: x"
    assert str(Fault(0, 0, "x")) == "x"
