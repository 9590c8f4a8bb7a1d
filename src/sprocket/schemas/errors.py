"""What can be wrong with schemas and with bodies. Pure."""

from __future__ import annotations

from typing import ClassVar

from sprocket.base.errors import SprocketError, UsageError

#: Characters of another library's reason.
_REASON_MAX = 200


class SchemaInvalid(UsageError):
    """A text, a file or an answer is no schema that can be used; the text says what is wrong."""


class BodyMismatch(SprocketError):
    """A body does not fit its schema, or a value cannot be encoded by it."""


class SchemaNotFound(BodyMismatch):
    """A registry has no schema with the number that a body begins with, or of a name."""


class RegistryUnavailable(SprocketError):
    """A registry does not answer, or not with schemas. Nothing is known of the body."""

    retriable: ClassVar[bool] = True


def reason_of(error: BaseException) -> str:
    """The text of another library's error, in one line that a terminal can show: it may repeat what
    a stranger has sent."""
    words = " ".join(str(error)[:_REASON_MAX].split()) or type(error).__name__
    return words if words.isprintable() else ascii(words)[1:-1]
