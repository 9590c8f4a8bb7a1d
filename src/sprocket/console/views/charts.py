"""Options of ECharts for the plots of the console. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: Colours that are told apart by people who see few, in light and in dark.
COLOURS = ("#2a78b8", "#d97b29", "#3d9970", "#b8527e", "#7a6fc2", "#8c8c3e", "#4aa3a2", "#9c6b4f")

#: Text and lines that are seen on white and on black.
_INK, _FAINT = "#84909c", "rgba(128, 140, 152, 0.22)"

#: The shortest time that a plot shows, ms.
_NARROWEST_MS = 60_000

#: Time in ms since 1970 UTC and value; None is a gap.
Points = Sequence[tuple[int, float | None]]


def line_options(
    lines: Mapping[str, Points],
    *,
    span: tuple[int, int] | None = None,
    highest: float | None = None,
    is_whole: bool = False,
) -> dict[str, Any]:
    """A plot of lines over time. The names of lines are shown as text.

    Args:
        span: begin and end of the time that is shown, ms since 1970 UTC; a begin without values is
            left out.
        highest: the end of the axis; None for what the values need.
        is_whole: whether values are counts, so that the axis has whole numbers only.
    """
    axis = {
        "axisLabel": {"color": _INK, "hideOverlap": True, "fontSize": 11},
        "axisLine": {"lineStyle": {"color": _FAINT}},
        "axisTick": {"show": False},
        "splitLine": {"lineStyle": {"color": _FAINT}},
    }
    return {
        "animation": False,
        "color": list(COLOURS),
        "textStyle": {"fontFamily": "inherit"},
        "grid": {"left": 8, "right": 20, "top": 34, "bottom": 6, "containLabel": True},
        "legend": {
            "type": "scroll", "top": 0, "left": 0, "icon": "roundRect", "itemWidth": 10,
            "itemHeight": 3, "textStyle": {"color": _INK}, "data": list(lines),
        },
        "tooltip": {
            "trigger": "axis", "confine": True, "renderMode": "richText",
            "backgroundColor": "#20262d", "borderWidth": 0,
            "textStyle": {"color": "#e8ebee", "fontSize": 12},
        },
        "xAxis": {"type": "time", **_ends(lines, span), **axis, "splitLine": {"show": False}},
        "yAxis": {
            "type": "value", "min": 0, "max": highest, **axis, "splitNumber": 3,
            "minInterval": 1 if is_whole else 0,
        },
        "series": [
            {
                "type": "line", "name": name, "showSymbol": False, "connectNulls": False,
                "lineStyle": {"width": 1.8}, "data": [list(point) for point in points],
            }
            for name, points in lines.items()
        ],
    }  # fmt: skip


def _ends(lines: Mapping[str, Points], span: tuple[int, int] | None) -> dict[str, int]:
    if span is None:
        return {}
    first = min((points[0][0] for points in lines.values() if points), default=span[0])
    return {"min": max(span[0], min(first, span[1] - _NARROWEST_MS)), "max": span[1]}
