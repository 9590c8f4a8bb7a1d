"""Reduces values over time to what a plot can show: few names, in buckets of equal width.

Only the points of the plot come to the driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sprocket.plots.options import LINES_MAX

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Most points of a line.
POINTS_MAX = 240

Points = dict[str, list[tuple[int, float]]]


class Bucketed(NamedTuple):
    """Lines, and the width of their buckets."""

    lines: Points
    width_ms: int


def over_time(frame: DataFrame, *, name: str, at: str, value: Column, unit_ms: int = 1) -> Bucketed:
    """A line of points (ms, value) for each of the most frequent names, at most eight.

    Args:
        name: the column with names.
        at: the column with times, ms since 1970.
        value: an aggregate over the rows of a bucket.
        unit_ms: the width of buckets is a multiple of it.
    """
    from pyspark.sql import functions as f

    edges = frame.agg(f.min(at).alias("first"), f.max(at).alias("last")).collect()[0]
    if edges["first"] is None:
        return Bucketed({}, unit_ms)
    width = width_of(edges["last"] - edges["first"], unit_ms)
    often = frame.groupBy(name).agg(f.count(f.lit(1)).alias("often"))
    first = [row[name] for row in often.orderBy(f.desc("often"), name).limit(LINES_MAX).collect()]
    bucket = (f.floor(f.col(at) / width) * width).alias("bucket")
    points = (
        frame.where(f.col(name).isin(first))
        .groupBy(name, bucket)
        .agg(value.alias("value"))
        .orderBy("bucket")
        .collect()
    )
    lines: Points = {one: [] for one in first}
    for row in points:
        if row["value"] is not None:
            lines[row[name]].append((int(row["bucket"]), float(row["value"])))
    return Bucketed(lines, width)


def width_of(span_ms: int, unit_ms: int) -> int:
    """Width of buckets with which a span has at most `POINTS_MAX`; a multiple of `unit_ms`."""
    return max(1, -(-(span_ms + 1) // (POINTS_MAX * unit_ms))) * unit_ms


def ms(column: str) -> Column:
    """A timestamp column as ms since 1970."""
    from pyspark.sql import functions as f

    return f.unix_millis(column)
