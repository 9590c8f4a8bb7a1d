"""Bounds how long a JSON Schema may check one body.

A schema of a few lines can refer to others so that it is applied 2^40 times, and jsonschema looks
for items and properties that nothing else has evaluated in time that grows with the square of their
number. So each keyword that is applied is a step, and a body has so many.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

#: Keyword functions of jsonschema: validator, the keyword's value, the instance, the schema.
_Keyword = Callable[[Any, Any, Any, Any], Iterator[Any] | None]

#: Most keywords apply to a value once, and a value has two bytes or more with what is around it.
_STEPS_MAX, _STEPS_FOR_BYTE = 200_000, 8
#: Comparisons of items that count as a step.
_PAIRS_FOR_STEP = 64
_SQUARE = ("unevaluatedItems", "unevaluatedProperties")

_of_thread = threading.local()


class TooManySteps(Exception):
    """The schema is applied so often that it is not worth to go on."""


def begin(body_bytes: int) -> None:
    """Begins to count, for a body that this thread checks."""
    _of_thread.left = _STEPS_MAX + _STEPS_FOR_BYTE * body_bytes


def counted(keywords: Mapping[str, _Keyword]) -> dict[str, _Keyword]:
    """The same keywords, each of which raises TooManySteps when there are no steps left."""
    return {name: _counted(name, keyword) for name, keyword in keywords.items()}


def _counted(name: str, keyword: _Keyword) -> _Keyword:
    is_square = name in _SQUARE

    def count(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any] | None:
        steps = 1
        if is_square and isinstance(value, list | dict):
            steps += len(value) ** 2 // _PAIRS_FOR_STEP
        _of_thread.left -= steps
        if _of_thread.left < 0:
            raise TooManySteps
        return keyword(validator, wanted, value, schema)

    return count


def ordered(schema: Any) -> Any:
    """The same schema, in which the keywords that go through all others again come last: these
    have counted their steps then."""
    if isinstance(schema, list):
        return [ordered(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    last = {name: schema[name] for name in _SQUARE if name in schema}
    found = {name: ordered(each) for name, each in schema.items() if name not in last}
    return {**found, **{name: ordered(each) for name, each in last.items()}}
