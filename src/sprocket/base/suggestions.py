"""What a person may have meant by a name that is not known. Pure.

Names may differ by letters that look alike, or by characters that cannot be seen; then the
suggestion says which, by code point.
"""

from __future__ import annotations

import difflib
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

#: Letters of other alphabets that look like Latin ones.
_ALIKE = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u04cf\u0501\u0410\u0412\u0415"
    "\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0406\u0408\u0405\u0391\u0392\u0395\u0396"
    "\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf\u03c1\u03bd\u0131",
    "aeopcyxijsldABEKMHOPCTXIJSABEZHIKMNOPTYXopvi",
)
_SHOWN_MAX = 80
#: How similar names are that may be meant, as `difflib` counts it: twice the characters that both
#: have in the same order, of all characters of both.
_SIMILAR = 0.6
#: By how much a bound may be wrong, since fractions are rounded.
_ROUNDED = 1e-9


class _Known(NamedTuple):
    """Known names in a form that is quick to search.

    Attributes:
        by_fold: each name by its folded form.
        folds: length, letters as bits, and folded form of each, the shortest first.
    """

    by_fold: dict[str, str]
    folds: list[tuple[int, int, str]]


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean '…'?` if a known name is similar, and how they differ if that is hard to see.

    Returns:
        A text to put behind the error message; empty if no known name is similar.
    """
    table = _known(frozenset(known))
    folded = _folded(name)
    near = folded if folded in table.by_fold else _most_similar(folded, table)
    if near is None:
        return _strange(name)
    meant = table.by_fold[near]
    if folded == near and name.lower() == meant.lower():
        at = next(n for n, (a, b) in enumerate(zip(name, meant, strict=True), 1) if a != b)
        return f"; did you mean '{meant}'? Letter case counts, see character {at}"
    return f"; did you mean '{meant}'?{_strange(name).replace(';', '')}"


@lru_cache(maxsize=16)
def _known(names: frozenset[str]) -> _Known:
    by_fold: dict[str, str] = {}
    for each in sorted(names):
        by_fold.setdefault(_folded(each), each)
    return _Known(by_fold, sorted((len(fold), _letters(fold), fold) for fold in by_fold))


def _most_similar(folded: str, table: _Known) -> str | None:
    matcher, best, found = difflib.SequenceMatcher(), _SIMILAR, ""
    matcher.set_seq2(folded)
    for bound, fold in _candidates(folded, table):
        if bound < best:
            break  # the others are less similar
        matcher.set_seq1(fold)
        if matcher.quick_ratio() >= best and (ratio := matcher.ratio()) >= best:
            found = fold if ratio > best else max(found, fold)
            best = ratio
    return found or None


# A file may have thousands of names that are not known, and difflib takes 10 µs for each pair.
def _candidates(folded: str, table: _Known) -> list[tuple[float, str]]:
    """The folded names that may be similar, each with a bound of its similarity that is cheap to
    find, by length and letters. The most similar ones come first."""
    size, letters = len(folded), _letters(folded)
    shortest, longest = size * _SIMILAR / (2 - _SIMILAR), size * (2 - _SIMILAR) / _SIMILAR
    found = []
    for at in range(bisect_left(table.folds, (int(shortest),)), len(table.folds)):
        length, others, fold = table.folds[at]
        if length > longest + _ROUNDED:
            break
        same = min(size - (letters & ~others).bit_count(), length - (others & ~letters).bit_count())
        if (bound := 2 * same / (size + length) + _ROUNDED) >= _SIMILAR:
            found.append((bound, fold))
    return sorted(found, reverse=True)


def _letters(folded: str) -> int:
    """The characters of a name as bits; some that are rare share one."""
    bits = 0
    for each in set(folded):
        bits |= 1 << ord(each) % 64
    return bits


def shown(text: str) -> str:
    """A text in quotes, as it is shown in messages: without what cannot be printed, and short."""
    cut = text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "…"
    return repr(cut) if cut.isprintable() else ascii(cut)


def _folded(name: str) -> str:
    """A name without differences that one can hardly see."""
    plain = unicodedata.normalize("NFKC", name).translate(_ALIKE).lower()
    return "".join(each for each in plain if each.isprintable() and not each.isspace())


def _strange(name: str) -> str:
    """Which characters of a name are not plain ASCII, if there are any."""
    strange = [
        f"character {at} is U+{ord(each):04X} {unicodedata.name(each, 'without a name')}"
        for at, each in enumerate(name, 1)
        if not (each.isascii() and each.isprintable())
    ]
    return "; " + ", ".join(strange[:3]) if strange else ""
