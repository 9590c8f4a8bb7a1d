"""Settings of brokers as rows of tables, and those in which brokers differ. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sprocket.console.operations.settings import (
    FilterVersion,
    SettingDifferences,
    SettingFacts,
)
from sprocket.console.views.bodies import visible
from sprocket.console.views.units import NOTHING, ago_text, count_text


def setting_rows(settings: Iterable[SettingFacts]) -> list[dict[str, Any]]:
    """A row for each setting of each broker."""
    return [
        {
            "id": f"{each.setting}@{each.broker}",
            "setting": visible(each.setting),
            "broker": each.broker,
            "value": visible(each.value),
        }
        for each in settings
    ]


def difference_rows(found: SettingDifferences) -> list[dict[str, Any]]:
    """A row for each setting that is not the same everywhere, with a column for each broker.

    Brokers are named by their numbers: a name is not made a part of what is sent as code.
    """
    return [
        {
            "setting": visible(each.setting),
            **{
                f"broker{number}": NOTHING if (value := each.values.get(broker)) is None
                else visible(value)
                for number, broker in enumerate(found.brokers)
            },
        }
        for each in found.differences
    ]  # fmt: skip


def filter_rows(filters: Iterable[FilterVersion], now_ms: int) -> list[dict[str, Any]]:
    """A row for each version of a filter in Python at each broker."""
    return [
        {
            "id": f"{each.broker} {each.group} {each.topic} {each.name} {each.version}",
            "broker": each.broker,
            "group": each.group,
            "topic": each.topic,
            "name": visible(each.name),
            "version": each.version[:12],
            "state": _filter_state(each),
            "state_look": "bad" if each.off else "good" if each.is_running else "",
            "judged": each.judged,
            "judged_text": count_text(each.judged),
            "wanted": each.wanted,
            "wanted_text": count_text(each.wanted),
            "uploaded": each.uploaded_at.timestamp() if each.uploaded_at else 0,
            "uploaded_text": ago_text(each.uploaded_at, now_ms),
        }
        for each in filters
    ]


def _filter_state(each: FilterVersion) -> str:
    if each.off:
        return f"off: {visible(each.off)}"
    said = "runs" if each.is_running else "rests"
    return said if each.is_newest else f"{said}, replaced"
