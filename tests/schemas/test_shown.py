"""Values of every format are shown as JSON."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from sprocket.schemas.shown import json_of


def test_what_json_does_not_have_is_a_text() -> None:
    value = {
        "bytes": b"\xff", "nan": math.nan, "inf": [math.inf], "big": 1 << 70,
        "at": datetime(2030, 1, 31, 8, tzinfo=UTC), "day": date(2030, 1, 31),
        "sum": Decimal("1.20"), "half": "\ud800", "wait": timedelta(seconds=1.5), 7: True,
    }  # fmt: skip
    assert json.loads(json_of(value)) == {
        "bytes": "/w==", "nan": "nan", "inf": ["inf"], "big": 1 << 70,
        "at": "2030-01-31T08:00:00Z", "day": "2030-01-31", "sum": "1.20", "half": "?",
        "wait": "1.5s", "7": True,
    }  # fmt: skip
    assert json_of({"a": [1]}, indent=2) == '{\n  "a": [\n    1\n  ]\n}'
