"""Parses the properties of many records at once into Arrow maps and single values.

The text of a record is a sequence of `name U+0001 value U+0002`. While the separators alternate,
names and values are the pieces between them, and one pass over the separators finds them all. If
any text is irregular, each record is parsed alone with the rules of `sprocket.message.properties`;
both methods give the same result.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sprocket.message.properties import decode_bytes

Places = NDArray[np.int64]

_NAME_END = 1
_PAIR_END = 2
_PAIR_END_BYTE = np.uint8(_PAIR_END)

MAP = pa.map_(pa.string(), pa.string())


class PropertyTexts:
    """The properties of a run of records.

    Args:
        joined: the texts of all records, one after the other.
        ends: where each text begins in `joined`, and the end of the last: one more than records.
    """

    def __init__(self, joined: bytes | memoryview, ends: Places) -> None:
        self.joined = np.frombuffer(joined, np.uint8)
        self.ends = ends
        #: (name starts, name ends, value starts, value ends, first pair of each record), or None
        #: if a text is irregular.
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
        edges[-1] = value_ends[-1] + 1 if len(names) else 0
        pieces = self._pieces(edges)
        chosen = np.arange(0, 4 * len(names), 4, dtype=np.int64)
        return pa.MapArray.from_arrays(
            pa.array(firsts.astype(np.int32)),
            pieces.take(pa.array(chosen)),
            pieces.take(pa.array(chosen + 2)),
        )

    def values_of(self, name: str) -> pa.Array:
        """Each record's value of one property; null where it has none."""
        if self._pairs is None:
            return pa.array([one.get(name) for one in self._each()], pa.string())
        _, _, values, value_ends, firsts = self._pairs
        pairs = self._pairs_named(name.encode())
        records = np.searchsorted(firsts, pairs, "right") - 1
        edges = np.zeros(2 * len(self.ends) - 1, np.int32)
        # A record without the property gets an empty piece. If a name is repeated, the last value
        # counts: numpy assigns in order, so later entries overwrite earlier ones.
        begin = np.zeros(len(self.ends) - 1, np.int64)
        end = np.zeros(len(self.ends) - 1, np.int64)
        is_missing = np.ones(len(self.ends) - 1, np.bool_)
        begin[records], end[records] = values[pairs], value_ends[pairs]
        is_missing[records] = False
        begin[is_missing] = end[is_missing] = self.ends[:-1][is_missing]
        edges[0:-1:2], edges[1::2] = begin, end
        edges[-1] = end[-1] if len(end) else 0
        chosen = np.arange(0, 2 * len(begin), 2, dtype=np.int64)
        return self._pieces(edges).take(pa.array(chosen, mask=is_missing))

    def _pairs_named(self, name: bytes) -> Places:
        """Indices of the pairs with a name; compares lengths first, then byte by byte."""
        assert self._pairs is not None
        names, name_ends = self._pairs[:2]
        found = np.flatnonzero(name_ends - names == len(name))
        for index, byte in enumerate(name):
            if len(found) == 0:
                break
            found = found[self.joined[names[found] + index] == byte]
        return found

    def _pieces(self, edges: NDArray[np.int32]) -> pa.Array:
        return pa.StringArray.from_buffers(
            len(edges) - 1, pa.py_buffer(edges), pa.py_buffer(self.joined)
        )

    def _each(self) -> list[dict[str, str]]:
        if self._parsed is None:
            self._parsed = [decode_bytes(raw) for raw in self._raws()]
        return self._parsed

    def _raws(self) -> Iterator[memoryview]:
        view = self.joined.data
        edges = self.ends.tolist()
        for begin, end in pairwise(edges):
            yield view[begin:end]

    # Each condition below makes the fast method unsafe: other rules apply then for what a name or a
    # value is, and only the parser for single records has them.
    def _find_pairs(self) -> tuple[Places, Places, Places, Places, Places] | None:
        if not _is_utf8(self.joined):
            return None
        self._close_last_pairs()
        marks = np.flatnonzero(self.joined <= _PAIR_END)
        kinds = self.joined[marks]
        name_ends, value_ends = marks[0::2], marks[1::2]
        if (
            len(marks) % 2
            or (kinds[0::2] != _NAME_END).any()
            or (kinds[1::2] != _PAIR_END).any()
            or len(self.joined) != (int(marks[-1]) + 1 if len(marks) else 0)
        ):
            return None
        firsts = np.searchsorted(value_ends, self.ends)
        values = name_ends + 1
        names = np.empty_like(name_ends)
        if len(names):
            names[0] = 0
            names[1:] = value_ends[:-1] + 1
        if (name_ends == names).any() or (value_ends == values).any():
            return None
        return names, name_ends, values, value_ends, firsts

    def _close_last_pairs(self) -> None:
        """Adds the separator that some senders leave out after a record's last pair."""
        if len(self.joined) == 0:
            return
        last = self.ends[1:] - 1
        is_open = (self.ends[1:] > self.ends[:-1]) & (self.joined[last] != _PAIR_END_BYTE)
        if is_open.any():
            places = self.ends[1:][is_open]
            self.joined = np.insert(self.joined, places, _PAIR_END_BYTE)
            self.ends = self.ends.copy()
            self.ends[1:] += np.cumsum(is_open)


def _is_utf8(joined: NDArray[np.uint8]) -> bool:
    """Whether all pieces are UTF-8: if the whole is, so are pieces cut at bytes below 0x80."""
    try:
        joined.tobytes().decode()
    except UnicodeDecodeError:
        return False
    return True
