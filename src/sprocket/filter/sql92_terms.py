"""Terms: the parts of an SQL92 expression, and the rules for combining them.

Each function makes one term of others, or raises an error with the column where they do not fit.
The rules are RocketMQ's: a property is a text; `>`, `<`, `>=`, `<=` and BETWEEN compare numbers;
IN compares texts. Java accepts an equality whose sides can never be equal; here it is refused,
since it never matches. Pure.

Source: ComparisonExpression, ConstantExpression, UnaryExpression, LogicExpression and
SelectorParser.asBooleanExpression of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from sprocket.base.errors import SubscriptionInvalid, UsageError
from sprocket.message.offsets import LONG_MAX

#: The deepest nesting of terms.
DEPTH_MAX = 32

_CLOSER = "NOT binds closer than"
_PARENTHESES = "put what belongs to it in parentheses"
_INT_MAX = 2**31 - 1


class SqlInvalid(SubscriptionInvalid, UsageError):
    """An SQL92 expression cannot be parsed.

    Attributes:
        fault: what is wrong.
        column: its position in the text, from 1.
    """

    def __init__(self, fault: str, column: int) -> None:
        super().__init__(f"SQL filter, column {column}: {fault}")
        self.fault = fault
        self.column = column


class ValueType(Enum):
    """The type of a term's value.

    Members:
        PROPERTY: a text, or null if the message has no such property.
        TEXT, INT, LONG, DOUBLE: a constant. The type of a number decides how texts are converted.
        BOOLEAN: true, false or null.
        NOTHING: always null: the negative of something that is no number.
    """

    PROPERTY = "a property"
    TEXT = "a string"
    INT = "a number"
    LONG = "a long number"
    DOUBLE = "a decimal number"
    BOOLEAN = "a condition"
    NOTHING = "a negative"


NUMBERS = (ValueType.INT, ValueType.LONG, ValueType.DOUBLE)
TEXTS = (ValueType.PROPERTY, ValueType.TEXT)


@dataclass(frozen=True, slots=True)
class Term:
    """A part of an expression that has a value.

    Attributes:
        column: where it begins in the text, from 1.
        depth: the depth of nesting in it.
    """

    column: int
    kind: ValueType
    depth: int


@dataclass(frozen=True, slots=True)
class Constant(Term):
    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Property(Term):
    name: str


@dataclass(frozen=True, slots=True)
class Negative(Term):
    term: Term


@dataclass(frozen=True, slots=True)
class IsThere(Term):
    """A property in place of a condition: false, or null if it is missing."""

    term: Term


@dataclass(frozen=True, slots=True)
class Not(Term):
    term: Term


@dataclass(frozen=True, slots=True)
class Junction(Term):
    """Conditions joined by AND (`is_and`), or by OR."""

    is_and: bool
    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Equality(Term):
    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class Order(Term):
    """`sign` is `<`, `<=`, `>` or `>=`."""

    sign: str
    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class Between(Term):
    term: Term
    low: Term
    high: Term


@dataclass(frozen=True, slots=True)
class IsNull(Term):
    term: Term


@dataclass(frozen=True, slots=True)
class InList(Term):
    """IN, or NOT IN."""

    name: str
    values: frozenset[str]
    is_in: bool


@dataclass(frozen=True, slots=True)
class Search(Term):
    """`how` is CONTAINS, STARTSWITH or ENDSWITH; `is_found` False for the NOT form."""

    how: str
    term: Term
    wanted: str
    is_found: bool


def _called(term: Term) -> str:
    """The name of a term in error texts."""
    if isinstance(term, Constant) and term.kind is ValueType.BOOLEAN:
        return "NULL" if term.value is None else str(term.value).upper()
    return term.kind.value


def text(column: int, value: str) -> Constant:
    """A string between quotes."""
    return Constant(column, ValueType.TEXT, 1, value)


def whole(column: int, digits: str) -> Constant:
    """A number without a decimal point; an `L` may follow it."""
    value = int(digits.rstrip("lL")) if len(digits) <= 20 else LONG_MAX + 1
    if value > LONG_MAX:
        raise SqlInvalid(f"a whole number is at most {LONG_MAX}", column)
    return Constant(column, ValueType.INT if value <= _INT_MAX else ValueType.LONG, 1, value)


def decimal(column: int, digits: str) -> Constant:
    """A number with a decimal point or an exponent."""
    value = float(digits)
    if value == float("inf"):
        raise SqlInvalid("the number is too large", column)
    return Constant(column, ValueType.DOUBLE, 1, value)


def boolean(column: int, value: bool | None) -> Constant:
    """TRUE, FALSE or NULL."""
    return Constant(column, ValueType.BOOLEAN, 1, value)


def named(column: int, name: str) -> Property:
    """A property."""
    return Property(column, ValueType.PROPERTY, 1, name)


def negative(column: int, term: Term) -> Term:
    """A term after a minus sign."""
    if isinstance(term, Constant) and term.kind in NUMBERS:
        assert isinstance(term.value, int | float)
        return Constant(column, term.kind, 1, -term.value)
    return Negative(column, ValueType.NOTHING, _deeper(column, term), term)


def condition(term: Term) -> Term:
    """A term in a place that needs a condition.

    Raises:
        SqlInvalid: it is neither a condition nor a property.
    """
    if term.kind is ValueType.BOOLEAN:
        return term
    if isinstance(term, Property):
        return IsThere(term.column, ValueType.BOOLEAN, 1, term)
    raise SqlInvalid(f"{_called(term)} alone is not true or false", term.column)


def negated(column: int, term: Term) -> Not:
    """NOT."""
    inner = condition(term)
    return Not(column, ValueType.BOOLEAN, _deeper(column, inner), inner)


def joined(terms: Sequence[Term], *, is_and: bool) -> Junction:
    """AND, or OR."""
    conditions = tuple(condition(term) for term in terms)
    column = conditions[0].column
    return Junction(column, ValueType.BOOLEAN, _deeper(column, *conditions), is_and, conditions)


def equal(left: Term, right: Term) -> Equality:
    """`=`."""
    for term in (left, right):
        if isinstance(term, Constant) and term.value is None:
            raise SqlInvalid("nothing equals NULL; write IS NULL", term.column)
    _check_comparable(left, right)
    return Equality(left.column, ValueType.BOOLEAN, _deeper(left.column, left, right), left, right)


def _check_comparable(left: Term, right: Term) -> None:
    """Refuses an equality that Java accepts and that is never true."""
    if left.kind is ValueType.BOOLEAN and right.kind is not ValueType.BOOLEAN:
        if isinstance(left, Not):
            raise SqlInvalid(f"{_CLOSER} =; {_PARENTHESES}", left.column)
        hint = f"; write it with {_called(left)} at the right" if right.kind in TEXTS else ""
        raise SqlInvalid(f"{_called(left)} never equals {_called(right)}{hint}", left.column)
    if right.kind is ValueType.BOOLEAN and left.kind in (*NUMBERS, ValueType.NOTHING):
        raise SqlInvalid(f"{_called(left)} never equals {_called(right)}", left.column)


def ordered(sign: str, left: Term, right: Term) -> Order:
    """`<`, `<=`, `>` or `>=`."""
    _check_number(left, sign)
    _check_number(right, sign)
    return Order(
        left.column, ValueType.BOOLEAN, _deeper(left.column, left, right), sign, left, right
    )


def _check_number(term: Term, sign: str) -> None:
    if isinstance(term, Not):
        raise SqlInvalid(f"{_CLOSER} {sign}; {_PARENTHESES}", term.column)
    if term.kind in (ValueType.TEXT, ValueType.BOOLEAN):
        raise SqlInvalid(f"{sign} compares numbers, not {_called(term)}", term.column)


def between(term: Term, low: Term, high: Term, *, is_in: bool) -> Term:
    """BETWEEN, or NOT BETWEEN; the bounds are inside."""
    for each in (term, low, high):
        _check_number(each, "BETWEEN")
    if is_in and _is_turned(low, high):
        raise SqlInvalid("BETWEEN needs the lower number first", low.column)
    column = term.column
    found = Between(column, ValueType.BOOLEAN, _deeper(column, term, low, high), term, low, high)
    return found if is_in else negated(column, found)


def _is_turned(low: Term, high: Term) -> bool:
    if not isinstance(low, Constant) or not isinstance(high, Constant):
        return False
    assert isinstance(low.value, int | float)
    assert isinstance(high.value, int | float)
    return high.value < low.value


def is_null(term: Term, *, is_there: bool) -> Term:
    """IS NULL, or IS NOT NULL."""
    found = IsNull(term.column, ValueType.BOOLEAN, _deeper(term.column, term), term)
    return negated(term.column, found) if is_there else found


def member(term: Term, values: Sequence[str], *, is_in: bool) -> InList:
    """IN, or NOT IN."""
    if not isinstance(term, Property):
        raise SqlInvalid(f"IN needs a property on its left, not {_called(term)}", term.column)
    return InList(term.column, ValueType.BOOLEAN, 2, term.name, frozenset(values), is_in)


def search(how: str, term: Term, wanted: str, *, is_found: bool) -> Search:
    """CONTAINS, STARTSWITH or ENDSWITH, or their NOT forms."""
    column = term.column
    return Search(column, ValueType.BOOLEAN, _deeper(column, term), how, term, wanted, is_found)


def _deeper(column: int, *terms: Term) -> int:
    depth = 1 + max(term.depth for term in terms)
    if depth > DEPTH_MAX:
        raise SqlInvalid(f"terms are inside each other more than {DEPTH_MAX} deep", column)
    return depth
