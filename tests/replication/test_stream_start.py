"""Where a stream begins: as Java's, but for slaves that Java leaves with heartbeats."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.errors import ConfigError
from sprocket.replication.stream_start import FreshStart, LogRange, stream_start

LOG = LogRange(2000, 5300, 1000)


@pytest.mark.parametrize(
    ("text", "offset"),
    [("last", 5000), ("first", 2000), ("3500", 3000), ("0", 2000), ("1", 2000), ("99999", 5000)],
)
def test_an_empty_slave_begins_with_the_file_that_is_set(text: str, offset: int) -> None:
    assert stream_start(0, LOG, FreshStart.parse(text)) == (offset, None)


@pytest.mark.parametrize("text", ["", "-1", "middle", "1.5", "9" * 20, "²"])
def test_a_wrong_setting_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="log offset"):
        FreshStart.parse(text)


@pytest.mark.parametrize("report", [2000, 2001, 5299, 5300])
def test_a_slave_with_a_log_goes_on_at_its_end(report: int) -> None:
    assert stream_start(report, LOG, FreshStart()) == (report, None)


def test_a_slave_that_asks_for_what_is_deleted_is_told_where_the_log_begins() -> None:
    start = stream_start(1999, LOG, FreshStart())
    assert start.offset == 2000
    assert "deleted" in (start.refusal or "")


def test_a_slave_that_is_ahead_is_told_where_the_log_ends() -> None:
    start = stream_start(5301, LOG, FreshStart())
    assert start.offset == 5300
    assert "ahead" in (start.refusal or "")


@given(st.integers(0, 50), st.integers(0, 5000), st.integers(1, 700), st.integers(-1, 9000))
def test_an_empty_slave_always_begins_at_a_file_of_the_log(
    first: int, length: int, file_bytes: int, wanted: int
) -> None:
    log = LogRange(first * file_bytes, first * file_bytes + length, file_bytes)
    offset = stream_start(0, log, FreshStart(wanted)).offset
    assert offset % file_bytes == 0
    assert log.start <= offset <= log.end
