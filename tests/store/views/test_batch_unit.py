"""Units of batch queues as bytes."""

from __future__ import annotations

from sprocket.store.views.batch_unit import UNIT, UNIT_BYTES, BatchUnit, units_in


def test_a_unit_has_rocketmq_s_bytes() -> None:
    raw = UNIT.pack(1, 2, 3, 4, 5, 6, -1, 0)
    assert UNIT_BYTES == 46
    assert raw.hex() == (
        "0000000000000001" "00000002" "0000000000000003" "0000000000000004"
        "0000000000000005" "0006" "ffffffff" "00000000"
    )  # fmt: skip
    (unit,) = units_in(raw)
    assert unit == BatchUnit(1, 2, 3, 4, 5, 6, -1, 0)
    assert unit.end == 11


def test_units_end_with_the_first_that_was_not_written() -> None:
    good = UNIT.pack(0, 1, 0, 0, 0, 1, -1, 0)
    for bad in (bytes(46), UNIT.pack(0, 1, 0, 0, -1, 1, -1, 0), UNIT.pack(0, 1, 0, 0, 0, 0, -1, 0)):
        assert len(list(units_in(good + bad + good))) == 1
    assert len(list(units_in(good + good[:-1]))) == 1
