"""Settings and filters as rows."""

from __future__ import annotations

from sprocket.console.operations.settings import (
    FilterVersion,
    SettingDifference,
    SettingDifferences,
    SettingFacts,
)
from sprocket.console.views import settings


def test_settings_have_a_row_and_differences_a_column_for_each_broker() -> None:
    (row,) = settings.setting_rows([SettingFacts(broker="a", setting="x", value="1")])
    assert row == {"id": "x@a", "setting": "x", "broker": "a", "value": "1"}
    found = SettingDifferences(
        brokers=["a", ":b"],
        differences=[SettingDifference(setting="x", values={"a": "1", ":b": None})],
    )
    # No name of a broker becomes the name of a property: one with a colon would be run as code.
    assert settings.difference_rows(found) == [{"setting": "x", "broker0": "1", "broker1": "–"}]


def test_a_filter_that_is_off_says_why() -> None:
    version = FilterVersion(
        broker="a", group="g", topic="t", name="cheap", version="0123456789abcdef",
        is_newest=True, is_running=False, judged=10_000, wanted=5, off="too slow", uploaded_at=None,
    )  # fmt: skip
    (row,) = settings.filter_rows([version], 0)
    assert (row["state"], row["state_look"], row["version"]) == (
        "off: too slow", "bad", "0123456789ab",
    )  # fmt: skip
