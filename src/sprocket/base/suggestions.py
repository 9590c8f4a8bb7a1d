"""What a person may have meant by a name that is not known. Pure.

Names may differ by letters that look alike, or by characters that cannot be seen; then the
suggestion says which, by code point.
"""

from __future__ import annotations

import difflib
import functools
import unicodedata
from collections.abc import Iterable

#: Letters of other alphabets that look like Latin ones.
_ALIKE = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u04cf\u0501\u0410\u0412\u0415"
    "\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0406\u0408\u0405\u0391\u0392\u0395\u0396"
    "\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf\u03c1\u03bd\u0131",
    "aeopcyxijsldABEKMHOPCTXIJSABEZHIKMNOPTYXopvi",
)
_SHOWN_MAX = 80
#: Longer names are not compared: no name that is known is nearly as long.
_NAME_MAX = 200


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean '…'?` if a known name is similar, and how they differ if that is hard to see.

    Returns:
        A text to put behind the error message; empty if no known name is similar.
    """
    if len(name) > _NAME_MAX:
        return _strange(name)
    by_fold = _by_fold(frozenset(known))
    folded = _folded(name)
    if folded in by_fold:
        near = [folded]
    else:  # one of another length cannot be alike enough, and to ask difflib of it costs more
        least, most = len(folded) * 3 / 7, len(folded) * 7 / 3
        alike = [each for each in by_fold if least <= len(each) <= most]
        near = difflib.get_close_matches(folded, alike, n=1, cutoff=0.6)
    if not near:
        return _strange(name)
    meant = by_fold[near[0]]
    if folded == near[0] and name.lower() == meant.lower():
        at = next(n for n, (a, b) in enumerate(zip(name, meant, strict=True), 1) if a != b)
        return f"; did you mean '{meant}'? Letter case counts, see character {at}"
    return f"; did you mean '{meant}'?{_strange(name).replace(';', '')}"


def shown(text: str) -> str:
    """A text in quotes, as it is shown in messages: without what cannot be printed, and short."""
    cut = text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "…"
    return repr(cut) if cut.isprintable() else ascii(cut)


# A file may have thousands of unknown names, and there are a thousand that are known.
@functools.lru_cache(maxsize=16)
def _by_fold(known: frozenset[str]) -> dict[str, str]:
    """Known names by what `_folded` makes of them."""
    found: dict[str, str] = {}
    for each in sorted(known):
        found.setdefault(_folded(each), each)
    return found


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
