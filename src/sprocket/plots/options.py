"""Options of ECharts: lines over time, and a bar for each name. Pure.

Names come from messages. They are only ever texts in these options: never a key, a template or the
address of a picture, and tooltips are drawn as text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: Colours that are told apart by people who see few, in light and in dark.
COLOURS = ("#2a78b8", "#d97b29", "#3d9970", "#b8527e", "#7a6fc2", "#8c8c3e", "#4aa3a2", "#9c6b4f")
#: A plot has as many lines as there are colours, at most.
LINES_MAX = len(COLOURS)

#: Text and lines that are seen on white and on black.
_INK, _FAINT = "#77838f", "rgba(128, 140, 152, 0.22)"

#: The shortest time that a plot shows, ms.
_NARROWEST_MS = 60_000
#: A line of few points shows each of them.
_MARKED_POINTS_MAX = 60
#: Width of the names beside bars in pixels, and below which width of a plot they have less.
_NAME_WIDTH, _PHONE_WIDTH, _PHONE_NAME_WIDTH = 240, 560, 110

#: Time in ms since 1970 UTC and value; None is a gap.
Points = Sequence[tuple[int, float | None]]

_AXIS: dict[str, Any] = {
    "axisLabel": {"color": _INK, "hideOverlap": True, "fontSize": 11},
    "axisLine": {"lineStyle": {"color": _FAINT}},
    "axisTick": {"show": False},
    "splitLine": {"lineStyle": {"color": _FAINT}},
}
#: The first and the last label stay within the plot.
_TIME_LABEL = {**_AXIS["axisLabel"], "alignMinLabel": "left", "alignMaxLabel": "right"}
_BASE: dict[str, Any] = {
    "animation": False,
    "color": list(COLOURS),
    # A whole list of families: "inherit" is none for the canvas, which then measures wrongly.
    "textStyle": {"fontFamily": "system-ui, sans-serif"},
}
_TOOLTIP: dict[str, Any] = {
    "confine": True,
    "renderMode": "richText",
    "backgroundColor": "#20262d",
    "borderWidth": 0,
    "textStyle": {"color": "#e8ebee", "fontSize": 12},
}


def line_options(
    lines: Mapping[str, Points],
    *,
    span: tuple[int, int] | None = None,
    highest: float | None = None,
    is_whole: bool = False,
    is_utc: bool = False,
) -> dict[str, Any]:
    """A plot of lines over time. The names of lines are shown as text.

    Args:
        span: begin and end of the time that is shown, ms since 1970 UTC; a begin without values is
            left out.
        highest: the end of the axis; None for what the values need.
        is_whole: whether values are counts, so that the axis has whole numbers only.
        is_utc: whether times are shown in UTC, not in the time of who looks.
    """
    return {
        **_BASE,
        "useUTC": is_utc,
        "grid": {"left": 8, "right": 20, "top": 34, "bottom": 6, "containLabel": True},
        "legend": {
            "type": "scroll", "top": 0, "left": 0, "icon": "roundRect", "itemWidth": 10,
            "itemHeight": 3, "data": list(lines), "pageTextStyle": {"color": _INK},
            "textStyle": {"color": _INK, "lineHeight": 18},
        },
        "tooltip": {"trigger": "axis", **_TOOLTIP},
        "xAxis": {
            "type": "time", **_ends(lines, span), **_AXIS, "splitLine": {"show": False},
            "axisLabel": _TIME_LABEL,
        },
        "yAxis": {
            "type": "value", "min": 0, "max": highest, **_AXIS, "splitNumber": 3,
            "minInterval": 1 if is_whole else 0,
        },
        "series": [
            {
                "type": "line", "name": name, "connectNulls": False,
                "showSymbol": span is None and len(points) <= _MARKED_POINTS_MAX,
                "symbol": "circle", "symbolSize": 5,
                "lineStyle": {"width": 1.8}, "data": [list(point) for point in points],
            }
            for name, points in lines.items()
        ],
    }  # fmt: skip


def bar_options(bars: Sequence[tuple[str, float]], *, unit: str) -> dict[str, Any]:
    """A plot with a bar for each name, the first at the top, each with its value.

    Args:
        unit: of the values.
    """
    names = [name for name, _ in bars]
    return {
        "baseOption": {
            **_BASE,
            "grid": {"left": 4, "right": 96, "top": 4, "bottom": 4, "containLabel": True},
            "tooltip": {"trigger": "item", **_TOOLTIP},
            "xAxis": {"type": "value", "min": 0, "show": False},
            "yAxis": {
                "type": "category", "inverse": True, "data": names, **_AXIS,
                "splitLine": {"show": False},
                "axisLabel": _name_label(_NAME_WIDTH),
            },
            "series": [{
                "type": "bar", "name": unit, "barMaxWidth": 16,
                "data": [_bar(value, unit) for _, value in bars],
            }],
        },
        "media": [{
            "query": {"maxWidth": _PHONE_WIDTH},
            "option": {"yAxis": {"axisLabel": _name_label(_PHONE_NAME_WIDTH)}},
        }],
    }  # fmt: skip


def number(value: float) -> str:
    """A number with few digits: 1.5k, 20M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def _name_label(width: int) -> dict[str, Any]:
    label = {**_AXIS["axisLabel"], "interval": 0, "hideOverlap": False}
    return {**label, "width": width, "overflow": "truncate"}


def _bar(value: float, unit: str) -> dict[str, Any]:
    # The label is a template for ECharts, in which braces name a value. A unit has none.
    text = f"{number(value)} {unit}".translate({ord("{"): "(", ord("}"): ")"})
    return {
        "value": value,
        "label": {"show": True, "position": "right", "color": _INK, "formatter": text},
    }


def _ends(lines: Mapping[str, Points], span: tuple[int, int] | None) -> dict[str, int]:
    if span is not None:
        first = min((points[0][0] for points in lines.values() if points), default=span[0])
        return {"min": max(span[0], min(first, span[1] - _NARROWEST_MS)), "max": span[1]}
    times = {time for points in lines.values() for time, _ in points}
    if len(times) != 1:
        return {}
    # One time has no length: its point stands in the middle of a minute.
    (only,) = times
    return {"min": only - _NARROWEST_MS // 2, "max": only + _NARROWEST_MS // 2}
