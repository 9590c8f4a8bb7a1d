"""Filters written in Python: a function that returns for each message whether it is wanted.

    def cheap(message):
        return float(message.properties["amount"]) < 5 and b"gift" in message.body

The broker runs it, see `sprocket.filterserver`. This module has what client and broker share: its
name, which is the function's, its source, and its version, the beginning of the source's SHA-256.
The text of a subscription of type `PYTHON` is `name@version`, or `name` for the newest. Pure.
"""

from __future__ import annotations

import hashlib
import hmac
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

from sprocket.base.errors import SubscriptionInvalid, UsageError

#: The expression type in subscriptions.
PYTHON = "PYTHON"
#: The most bytes of a source.
SOURCE_BYTES_MAX = 64 << 10

_NAME = re.compile(r"[A-Za-z_]\w{0,63}(?:\.[A-Za-z_]\w{0,63}){0,7}", re.ASCII)
_VERSION = re.compile(r"[0-9a-f]{16}")


class Upload(NamedTuple):
    """The values that identify an upload and that its signature covers.

    Attributes:
        signed_ms: when it was signed, ms since 1970 UTC.
    """

    group: str
    topic: str
    name: str
    version: str
    signed_ms: int = 0

    def signature(self, secret: str) -> str:
        """The signature with a secret: HMAC-SHA256 in hexadecimal."""
        text = "\n".join(("sprocket filter", *map(str, self)))
        return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()


class PythonFilter:
    """A filter in Python.

    Args:
        source: the function itself, or a text that defines one. None uses the filter that was
            uploaded before under this name.
        name: the function's name; needed with a text. Java clients give a class's name, whose
            last part is the function's.
        secret: signs uploads, for brokers that require it (`filter_secret`).

    Attributes:
        kind: the subscription's expression type.
        expression: the subscription's text.
        source: UTF-8, or None.
        version: of the source; empty without one.

    Raises:
        UsageError: the name is invalid, or the source is not available or too long.
    """

    kind: ClassVar[str] = PYTHON
    is_all: ClassVar[bool] = False
    tags: ClassVar[tuple[str, ...]] = ()
    codes: ClassVar[frozenset[int]] = frozenset()

    __slots__ = ("expression", "name", "secret", "source", "version")

    def __init__(
        self,
        source: Callable[[Any], bool] | str | None,
        name: str | None = None,
        *,
        secret: str | None = None,
    ) -> None:
        if callable(source):
            name = name or source.__name__
            source = _source_of(source)
        if not name or not is_name(name):
            raise UsageError(f"a filter is named like its function, not {name!r}")
        self.name = name
        self.secret = secret
        self.source = None if source is None else source.encode()
        self.version = "" if self.source is None else version_of(self.source)
        self.expression = f"{name}@{self.version}" if self.version else name

    def matches(self, properties: Mapping[str, str]) -> bool:
        """Always true: the broker has filtered the messages already."""
        return True

    def __repr__(self) -> str:
        return f"PythonFilter({self.expression!r})"


def is_name(name: str) -> bool:
    """Whether a name is valid for a filter."""
    return len(name) <= 255 and _NAME.fullmatch(name) is not None


def version_of(source: bytes) -> str:
    """A source's version.

    Raises:
        UsageError: it is empty or too long.
    """
    if not 0 < len(source) <= SOURCE_BYTES_MAX:
        raise UsageError(f"a filter's source has 1 to {SOURCE_BYTES_MAX} bytes, not {len(source)}")
    return hashlib.sha256(source).hexdigest()[:16]


def parts_of(expression: str | None) -> tuple[str, str]:
    """Name and version in a subscription's text; the version is empty for the newest.

    Raises:
        SubscriptionInvalid: it contains no valid name of a filter.
    """
    name, at, version = (expression or "").partition("@")
    if not is_name(name) or (at and not _VERSION.fullmatch(version)):
        raise SubscriptionInvalid(f"{(expression or '')[:100]!r} names no filter in Python")
    return name, version


def _source_of(function: Callable[[Any], bool]) -> str:
    try:
        lines = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError) as error:
        raise UsageError(f"the source of {function!r} cannot be had: {error}") from None
    if not lines.startswith("def "):
        raise UsageError(f"a filter is a plain function with a def of its own, not {function!r}")
    return lines
