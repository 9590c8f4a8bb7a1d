"""Parses the properties of many records at once into Arrow maps and single values.

The text of a record is a sequence of `name U+0001 value U+0002`. While the separators alternate,
names and values are the pieces between them, and one pass over the separators finds them all. If
any text is irregular, each record is parsed alone with the rules of `sprocket.message.properties`;
both methods give the same result.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sprocket.message.properties import decode_bytes
from sprocket.spark.records.heads import Buffer, Places, window
from sprocket.spark.records.slices import alternating, slices

_NAME_END = 1
_PAIR_END = 2
#: A byte that separates nothing, and cannot be a part of a longer character.
_NOTHING = ord(" ")
_ASCII_BYTES = 0x80

MAP = pa.map_(pa.string(), pa.string())


class _Pairs(NamedTuple):
    """Positions of all pairs in the joined texts.

    Attributes:
        names, name_ends, values, value_ends: of each pair.
        firsts: the index of each record's first pair, and the number of all pairs.
    """

    names: Places
    name_ends: Places
    values: Places
    value_ends: Places
    firsts: Places


class PropertyTexts:
    """The properties of a run of records.

    Args:
        buffer: has the texts.
        begin, end: of each record's text; they rise from record to record, and at least one byte
            is in front of each text.
    """

    def __init__(self, buffer: Buffer, begin: Places, end: Places) -> None:
        self._begin = np.empty(len(begin), np.int64)
        #: All texts, each behind one byte, which ends the last pair of the text before if that has
        #: no end of its own: many senders leave it out.
        self._joined = np.empty(0, np.uint8)
        if len(begin):
            self._join(buffer, begin, end)
        self._end = self._begin + (end - begin)
        self._pairs = self._find_pairs()
        self._parsed: list[dict[str, str]] | None = None

    @property
    def is_regular(self) -> bool:
        """Whether all texts are regular, so that the fast method applies."""
        return self._pairs is not None

    def maps(self) -> pa.Array:
        """Each record's properties as a map."""
        if self._pairs is None:
            return pa.array([list(one.items()) for one in self._each()], MAP)
        names, name_ends, values, value_ends, firsts = self._pairs
        # Arrow strings are offsets into one buffer. So the text itself becomes an array of the
        # pieces name, separator, value, separator, of which only names and values are taken.
        edges = np.empty(4 * len(names) + 1, np.int32)
        edges[0:-1:4], edges[1::4], edges[2::4], edges[3::4] = names, name_ends, values, value_ends
        edges[-1] = value_ends[-1] if len(names) else 0
        keys, items = alternating(self._joined.data, edges, pa.string())
        return pa.MapArray.from_arrays(pa.array(firsts.astype(np.int32)), keys, items)

    def values_of(self, name: str) -> pa.Array:
        """Each record's value of one property; null where it has none."""
        if self._pairs is None:
            return pa.array([one.get(name) for one in self._each()], pa.string())
        pairs = self._pairs_named(name.encode())
        records = self._owners[pairs]
        begin, end = self._pairs.values[pairs], self._pairs.value_ends[pairs]
        count = len(self._begin)
        if len(pairs) == count and bool((records[1:] > records[:-1]).all()):
            return slices(self._joined.data, begin, end, pa.string())
        # A record without the property gets an empty piece. If a name is repeated, the last value
        # counts: numpy assigns in order, so later entries overwrite earlier ones.
        begins, ends = self._begin.copy(), self._begin.copy()
        is_missing = np.ones(count, np.bool_)
        begins[records], ends[records] = begin, end
        is_missing[records] = False
        return slices(self._joined.data, begins, ends, pa.string(), is_null=is_missing)

    def _pairs_named(self, name: bytes) -> Places:
        """Indices of the pairs with a name."""
        assert self._pairs is not None
        # Length and first letter leave few other names, and the comparison of all letters is slow.
        sizes, letters = self._name_forms
        found = np.flatnonzero((sizes == len(name)) & (letters == name[0]))
        if len(found) == 0:
            return found
        is_same = window(self._joined.data, f"S{len(name)}")[self._pairs.names[found]] == name
        return found if is_same.all() else found[is_same]

    @cached_property
    def _name_forms(self) -> tuple[Places, NDArray[np.uint8]]:
        """The length and the first byte of each pair's name."""
        assert self._pairs is not None
        return self._pairs.name_ends - self._pairs.names, self._joined[self._pairs.names]

    @cached_property
    def _owners(self) -> Places:
        """The record of each pair."""
        assert self._pairs is not None
        return np.repeat(np.arange(len(self._begin)), np.diff(self._pairs.firsts))

    def _each(self) -> list[dict[str, str]]:
        if self._parsed is None:
            self._parsed = [decode_bytes(raw) for raw in self._raws()]
        return self._parsed

    def _raws(self) -> Iterator[memoryview]:
        view = self._joined.data
        for begin, end in zip(self._begin.tolist(), self._end.tolist(), strict=True):
            yield view[begin:end]

    def _join(self, buffer: Buffer, begin: Places, end: Places) -> None:
        pieces = slices(buffer, begin - 1, end)
        offsets = np.frombuffer(pieces.buffers()[1], np.int32, len(begin) + 1)
        self._joined = np.frombuffer(pieces.buffers()[2], np.uint8, int(offsets[-1]))
        fronts = offsets[:-1].astype(np.int64)
        self._begin = fronts + 1
        # The byte before a piece is the last one of the text before, or the one in front of that.
        self._joined[fronts] = _NOTHING
        is_open = self._joined[fronts[1:] - 1] != _PAIR_END
        is_open &= fronts[1:] > self._begin[:-1]
        self._joined[fronts[1:][is_open]] = _PAIR_END

    # Each condition below makes the fast method unsafe: other rules apply then for what a name or a
    # value is, and only the parser for single records has them.
    def _find_pairs(self) -> _Pairs | None:
        joined = self._joined
        marks = np.flatnonzero(joined <= _PAIR_END)
        kinds = joined[marks]
        if len(joined) and joined[-1] != _PAIR_END and self._end[-1] > self._begin[-1]:
            marks, kinds = np.append(marks, len(joined)), np.append(kinds, np.uint8(_PAIR_END))
        name_ends, value_ends = marks[0::2], marks[1::2]
        if (
            len(marks) % 2
            or (kinds[0::2] != _NAME_END).any()
            or (kinds[1::2] != _PAIR_END).any()
            or not _is_utf8(joined)
        ):
            return None
        firsts = np.append(np.searchsorted(value_ends, self._begin), len(value_ends))
        names, values = np.empty_like(name_ends), name_ends + 1
        names[1:] = value_ends[:-1] + 1
        has_any = firsts[:-1] < firsts[1:]
        names[firsts[:-1][has_any]] = self._begin[has_any]
        if (name_ends == names).any() or (value_ends == values).any():
            return None
        return _Pairs(names, name_ends, values, value_ends, firsts)


def _is_utf8(joined: NDArray[np.uint8]) -> bool:
    """Whether all pieces are UTF-8: if the whole is, so are pieces cut at bytes below 0x80."""
    if len(joined) == 0 or joined.max() < _ASCII_BYTES:
        return True
    try:
        joined.tobytes().decode()
    except UnicodeDecodeError:
        return False
    return True
