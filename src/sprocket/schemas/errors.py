"""What can be wrong with schemas and with bodies. Pure."""

from __future__ import annotations

from typing import ClassVar

from sprocket.base.errors import SprocketError, UsageError


class SchemaInvalid(UsageError):
    """A text, a file or an answer is no schema that can be used; the text says what is wrong."""


class BodyMismatch(SprocketError):
    """A body does not fit its schema, or a value cannot be encoded by it."""


class SchemaNotFound(BodyMismatch):
    """A registry has no schema with the number that a body begins with, or of a name."""


class RegistryUnavailable(SprocketError):
    """A registry does not answer, or not with schemas. Nothing is known of the body."""

    retriable: ClassVar[bool] = True
