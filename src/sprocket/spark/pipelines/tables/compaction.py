"""Chooses the small files of a table that become one. Pure: values in, values out."""

from __future__ import annotations

from collections.abc import Sequence

from sprocket.spark.pipelines.tables.table import TableFile

#: A file of this size or more is left alone, and the most that one merged file is made of, bytes.
WHOLE_SIZE = 128 * 1024 * 1024
#: Most files that are merged at a time, so that plans and failures stay small.
FILES_MAX = 1_000


def chosen(
    files: Sequence[TableFile], *, whole_size: int = WHOLE_SIZE, most: int = FILES_MAX
) -> list[TableFile] | None:
    """Files to merge now, each partition's into one; None if no partition has two small ones.

    Oldest first, so a file is not merged again and again while newer ones wait.
    """
    small: dict[tuple[object, ...], list[TableFile]] = {}
    for one in sorted(files, key=lambda file: (file.changed_ms, file.name)):
        if one.size < whole_size:
            small.setdefault(tuple(one.partition.values()), []).append(one)
    taken: list[TableFile] = []
    for group in small.values():
        bin_: list[TableFile] = []
        size = 0
        for one in group:
            if size + one.size <= whole_size and len(taken) + len(bin_) < most:
                bin_.append(one)
                size += one.size
        # Two files that are nearly whole together stay as they are, or each round would find them.
        if len(bin_) > 1:
            taken += bin_
    return taken or None
