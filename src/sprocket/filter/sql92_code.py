"""Compiles terms to one Python function, so that no tree is interpreted for each message.

The function's source is built from the templates below. A user's text never enters it, neither as
code nor as a name: strings are values of names like `c7`.

There are two functions for a condition. One takes a function from a property's name to its text or
None; its result is true, false or None, by the rules of three-valued logic, and it raises
`NotComparable` if a text that is no number is compared with one. The other is for scans of the log:
it takes the text of all properties in a record, finds those in the condition, and returns whether
the condition is true. Pure.

In the templates a capital letter stands for another part; `v` and `w` are the template's own
variables. The code for each property and number is inlined in them, since calls cost more. A
function of three terms over four properties takes 1.4 µs on a record's text, 0.6 µs if the first
term decides (decision 3, `python -m bench filters`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import count
from types import CodeType, FunctionType
from typing import cast

from sprocket.filter import sql92_terms as terms
from sprocket.filter.sql92_numbers import (
    NotComparable,
    as_boolean,
    as_double,
    as_int,
    as_long,
)
from sprocket.filter.sql92_terms import NUMBERS, TEXTS, Term, ValueType
from sprocket.message.properties import NAME_END, PAIR_END, decode

#: From a property's name to its text, or None.
Get = Callable[[str], str | None]
Test = Callable[[Get], bool | None]
#: Whether a message matches, given its properties in UTF-8.
TextTest = Callable[[bytes | memoryview], bool]

#: A constant of a condition: its strings are the user's.
_Value = str | int | float | frozenset[str] | None
#: A letter that stands for something else; names have more letters.
_LETTER = re.compile(r"\b([A-Zvw])\b")

#: The most conditions, without the strings behind IN. Each costs some 0.2 µs a message.
CONDITIONS_MAX = 128

_READERS = {
    ValueType.INT: "(int(v) if v.isdecimal() and len(v) < 10 else as_int(v))",
    ValueType.LONG: "(int(v) if v.isdecimal() and len(v) < 19 else as_long(v))",
    ValueType.DOUBLE: "as_double(v)",
}
_USED = (as_int, as_long, as_double, as_boolean, NotComparable, int, len, str)
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_SEARCHES = {
    "CONTAINS": "K in v", "STARTSWITH": "v.startswith(K)", "ENDSWITH": "v.endswith(K)",
}  # fmt: skip

_BY_NAME = "lambda get: X"
_GET = "get(K)"
_BY_TEXT = """
def judge(properties):
    text = MARK + str(properties, "utf-8", "replace") + MARK
    try:
        return X is True
    except NotComparable:
        return False
"""
#: The last property of a name counts, unless it is empty; that is rare, so `find` handles it.
_FIND = (
    "None if (v := text.rfind(K)) < 0 else text[(v := v + N) : text.find(MARK, v)] or find(text, K)"
)


def compiled(term: Term) -> Test:
    """The function for a condition.

    Raises:
        SqlInvalid: it has too many conditions.
    """
    return cast(Test, _function(_BY_NAME, _Writer(_property_by_name), term))


def compiled_for_text(term: Term) -> TextTest:
    """The function over the text of all properties. Raises the same as `compiled`."""
    return cast(TextTest, _function(_BY_TEXT, _Writer(_property_in_text), term))


def _property_by_name(name: str) -> tuple[str, dict[str, _Value]]:
    """How to read a property: a template, and the constants for its capital letters."""
    return _GET, {"K": name}


def _property_in_text(name: str) -> tuple[str, dict[str, _Value]]:
    mark = f"{PAIR_END}{name}{NAME_END}"
    return _FIND, {"K": mark, "N": len(mark)}


def _find(text: str, mark: str) -> str | None:
    """A property's value, found by decoding all properties."""
    return decode(text[1:]).get(mark[1:-1])


def _function(source: str, writer: _Writer, term: Term) -> FunctionType:
    # Source text is compiled in a third of the time that a syntax tree takes.
    text = _filled(_template(source), {"X": writer.write(term)})
    module = compile(text, "<SQL filter>", "exec")
    (code,) = (each for each in module.co_consts if isinstance(each, CodeType))
    names: dict[str, object] = {
        "__builtins__": {},
        **{each.__name__: each for each in _USED},
        "MARK": PAIR_END,
        "same": _same,
        "nothing": _nothing,
        "find": _find,
        **writer.constants,
    }
    return FunctionType(code, names)


def _same(left: object, right: object) -> bool | None:
    """The general equality: null equals null, and only a null on the left makes it unknown."""
    if left is None:
        return True if right is None else None
    return False if right is None else left == right


def _nothing(value: object) -> None:
    """Returns None. The argument is still evaluated, since that may raise `NotComparable`."""


class _Writer:
    """Builds the source of a term.

    Args:
        ask: how to read a property: a template, and the constants for its capital letters.

    Attributes:
        constants: the strings of the term, by their names in the source.
    """

    # Variables of a template get a new number each time, so nested templates never share one. The
    # templates follow Java's rules case by case, since a null on the left and one on the right
    # mean different things there.

    def __init__(self, ask: Callable[[str], tuple[str, dict[str, _Value]]]) -> None:
        self._ask = ask
        self.constants: dict[str, _Value] = {}
        self._names: dict[_Value, str] = {}
        self._numbers = count()
        self._conditions = 0

    def write(self, term: Term) -> str:
        """The source of any term."""
        if term.kind is ValueType.BOOLEAN:
            self._conditions += 1
            if self._conditions > CONDITIONS_MAX:
                fault = f"an expression has at most {CONDITIONS_MAX} conditions"
                raise terms.SqlInvalid(fault, term.column)
        match term:
            case terms.Constant():
                return self._constant(term.value)
            case terms.Property():
                return self._property(term.name)
            case terms.Negative():
                return self._fill("nothing(X)", X=self.write(term.term))
            case terms.Junction():
                return self._junction(term.terms, is_and=term.is_and)
            case terms.Not():
                return self._not(term.term)
            case terms.IsNull(term=terms.Constant(value=value)):
                return self._constant(value is None)
            case terms.IsNull():
                return self._fill("X is None", X=self.write(term.term))
            case terms.IsThere():
                return self._fill("None if X is None else False", X=self.write(term.term))
            case _:
                return self._comparison(term)

    def _property(self, name: str) -> str:
        template, parts = self._ask(name)
        constants = {letter: self._constant(value) for letter, value in parts.items()}
        return self._fill(template, **constants)

    def _constant(self, value: _Value) -> str:
        """How the source names a constant; numbers and truth values stand for themselves."""
        if value is None or isinstance(value, bool | int | float):
            return f"({value!r})"
        name = self._names.get(value)
        if name is None:
            name = self._names[value] = f"c{len(self._names)}"
            self.constants[name] = value
        return name

    def _comparison(self, term: Term) -> str:
        match term:
            case terms.Equality():
                return self._equality(term.left, term.right)
            case terms.Order():
                return self._order(term)
            case terms.Between():
                return self._between(term)
            case terms.InList():
                test = "v in K" if term.is_in else "v not in K"
                return self._fill(
                    f"None if (v := X) is None else {test}",
                    X=self._property(term.name),
                    K=self._constant(term.values),
                )
            case terms.Search():
                return self._search(term)
        raise TypeError(f"{term!r} cannot be written")

    def _junction(self, conditions: Sequence[Term], *, is_and: bool) -> str:
        """A balanced tree, so that a long chain is not deep; the order of evaluation is kept."""
        if len(conditions) == 1:
            return self.write(conditions[0])
        middle = len(conditions) // 2
        template = (
            "False if (v := L) is False else w if (w := R) is False or v else None"
            if is_and
            else "True if (v := L) else w if (w := R) or v is False else None"
        )
        left = self._junction(conditions[:middle], is_and=is_and)
        return self._fill(template, L=left, R=self._junction(conditions[middle:], is_and=is_and))

    def _not(self, term: Term) -> str:
        return self._fill("None if (v := X) is None else not v", X=self.write(term))

    def _equality(self, left: Term, right: Term) -> str:
        if left.kind in NUMBERS and right.kind in NUMBERS:
            return self._constant(_value(left, right) == _value(right, left))
        parts = {"L": self.write(left), "R": self.write(right)}
        if left.kind in TEXTS and right.kind in (*NUMBERS, ValueType.TEXT):
            return self._fill(f"None if (v := L) is None else {_read(right)} == R", **parts)
        if left.kind in NUMBERS and right.kind in TEXTS:
            return self._fill(f"False if (v := R) is None else L == {_read(left)}", **parts)
        if left.kind in TEXTS and right.kind is ValueType.BOOLEAN:
            return self._fill("same(as_boolean(L), R)", **parts)
        return self._fill("same(L, R)", **parts)

    def _order(self, term: terms.Order) -> str:
        sign, left, right = term.sign, term.left, term.right
        if left.kind in NUMBERS and right.kind in NUMBERS:
            parts = {"L": _value(left, right), "R": _value(right, left)}
            return self._fill(
                f"L {sign} R", **{place: self._constant(value) for place, value in parts.items()}
            )
        if left.kind in NUMBERS:
            sign, left, right = _TURNED[sign], right, left
        if ValueType.NOTHING in (left.kind, right.kind):
            template = "nothing((L, R))"
        elif right.kind is ValueType.PROPERTY:
            template = (
                f"None if (v := L) is None or (w := R) is None "
                f"else as_double(v) {sign} as_double(w)"
            )
        else:
            template = f"None if (v := L) is None else {_read(right)} {sign} R"
        return self._fill(template, L=self.write(left), R=self.write(right))

    def _between(self, term: terms.Between) -> str:
        kind = term.low.kind
        if term.term.kind is ValueType.PROPERTY and kind in NUMBERS and kind is term.high.kind:
            return self._fill(
                f"None if (v := X) is None else L <= {_read(term.low)} <= H",
                X=self.write(term.term),
                L=self.write(term.low),
                H=self.write(term.high),
            )
        bounds = (
            terms.ordered(">=", term.term, term.low),
            terms.ordered("<=", term.term, term.high),
        )
        return self._junction(bounds, is_and=True)

    def _search(self, term: terms.Search) -> str:
        operand = self.write(term.term)
        if not term.wanted:
            return self._constant(False)
        if term.term.kind not in TEXTS:
            return self._fill("nothing(X) is True", X=operand)
        test = _SEARCHES[term.how] if term.is_found else f"not {_SEARCHES[term.how]}"
        return self._fill(
            f"(v := X) is not None and {test}", X=operand, K=self._constant(term.wanted)
        )

    def _fill(self, template: str, **parts: str) -> str:
        """A template with parts for its capital letters and with its own variables."""
        number = next(self._numbers)
        return f"({_filled(_template(template), {**parts, 'v': f'v{number}', 'w': f'w{number}'})})"


def _filled(template: Sequence[str], names: Mapping[str, str]) -> str:
    return "".join([names.get(piece, piece) for piece in template])


def _read(constant: Term) -> str:
    """The code that converts variable `v` for a comparison with a constant."""
    return _READERS.get(constant.kind, "v")


@lru_cache(maxsize=64)
def _template(source: str) -> tuple[str, ...]:
    """A template, cut at its letters."""
    return tuple(_LETTER.split(source))


def _value(term: Term, other: Term) -> int | float:
    """A constant's value for a comparison with another: a decimal number if one of them is."""
    assert isinstance(term, terms.Constant)
    assert isinstance(term.value, int | float)
    return float(term.value) if ValueType.DOUBLE in (term.kind, other.kind) else term.value
