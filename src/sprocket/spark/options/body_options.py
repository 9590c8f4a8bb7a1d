"""The options of bodies with a schema, for reading and for writing.

Files are read where the options are parsed, by the driver; their contents travel to the tasks.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sprocket.base.errors import ConfigError, UsageError
from sprocket.spark.options import values
from sprocket.spark.options.declare import option
from sprocket.spark.options.profile import ProfileOptions

if TYPE_CHECKING:
    from sprocket.schemas.choice import Registry, SchemaChoice

FORMATS = ("json", "avro", "protobuf")
#: The registry that is the profile's.
PROFILES = "profile"


def body_format(name: str, value: str) -> str:
    """`json`, `avro` or `protobuf`."""
    word = value.strip().lower()
    if word not in FORMATS:
        raise UsageError(f"option {name} takes json, avro or protobuf, not {value!r}")
    return word


def body_schema(name: str, value: str) -> bytes | str:
    """A text as it is, or the content of the file that it names."""
    text = values.text(name, value)
    if _is_json(text) or len(text) > 4096 or "\0" in text:
        return text
    try:
        is_file = Path(text).is_file()
    except OSError:  # a name that is too long for a file is none
        return text
    if not is_file:
        return text
    from sprocket.schemas.folder_registry import read_schema

    return read_schema(Path(text))


def _is_json(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[", '"')


def _is_word(text: str) -> bool:
    """Whether a text cannot be columns as DDL, which have a name and a type each."""
    return len(text.replace(":", " ").split()) < 2


@dataclass(frozen=True)
class BodyOptions(ProfileOptions):
    """How bodies are decoded into columns, or encoded from a column."""

    body_format: str | None = option(
        "bodyFormat",
        body_format,
        "Format of bodies: `json`, `avro` or `protobuf`. A read has a column `value` then, and a "
        "write may have one instead of `body`.",
    )
    body_schema: bytes | str | None = option(
        "bodySchema",
        body_schema,
        "The schema of bodies: for JSON a JSON Schema, as a file or itself, that bodies are "
        "checked by, or only columns as DDL, `id string, amount double`; for Avro a file or the "
        "schema itself; for Protobuf a file, made by "
        "`protoc --include_imports --descriptor_set_out`.",
    )
    body_message: str | None = option(
        "bodyMessage", values.text, "Full name of Protobuf's message; without it the file's first."
    )
    registry: str | None = option(
        "schemaRegistry",
        values.text,
        "Where schemas are whose numbers bodies begin with: a URL, or a folder with files such as "
        "`17.avsc`, which all tasks must reach under this path; or `profile` for the one of "
        "`profile`, with its user.",
    )
    registry_subject: str | None = option(
        "schemaSubject",
        values.text,
        "Subject of the registry, or number of a schema, that says the columns of a read without "
        "`bodySchema`, and by which a write encodes. Default: the topic's name and `-value`.",
    )
    registry_user: str | None = option("schemaRegistryUser", values.text, "User of the registry.")
    registry_password: str | None = option(
        "schemaRegistryPassword", values.text, "Password of the registry's user.", is_secret=True
    )
    registry_token: str | None = option(
        "schemaRegistryToken",
        values.text,
        "Bearer token for the registry, instead of a user.",
        is_secret=True,
    )
    registry_authorities: str | None = option(
        "schemaRegistryAuthorities",
        values.text,
        "File (PEM) of the authorities that the registry's certificate is checked against.",
    )

    def check_bodies(self) -> None:
        """Raises ConfigError where the options of bodies contradict each other."""
        if self.body_format is None:
            for name, given in (
                ("bodySchema", self.body_schema), ("schemaRegistry", self.registry),
                ("bodyMessage", self.body_message), ("schemaSubject", self.registry_subject),
            ):  # fmt: skip
                if given is not None:
                    raise ConfigError(f"option {name} goes with bodyFormat")
            return
        if self.registry is None and self.registry_subject is not None:
            raise ConfigError("option schemaSubject goes with schemaRegistry")
        self._check_registry()
        if self.body_message is not None and self.body_format != "protobuf":
            raise ConfigError("option bodyMessage goes with bodyFormat protobuf")
        given = self.body_schema
        if self.body_format != "json" and given is None and self.registry is None:
            raise ConfigError(f"{self.body_format} needs bodySchema, or schemaRegistry")
        if isinstance(given, str):
            is_columns = self._columns() is not None
            if self.body_format == "protobuf" or (is_columns and _is_word(given)):
                raise ConfigError(f"option bodySchema: no such file: {given[:200]}")
        try:
            self.choice(None).codec()  # so that the driver says what is wrong
        except ConfigError:
            raise
        except UsageError as error:
            raise ConfigError(f"option bodySchema: {error}") from None

    def choice(self, topic: str | None) -> SchemaChoice:
        """How bodies of a topic are decoded and encoded.

        Args:
            topic: whose subject says the newest schema, unless another is given.
        """
        from sprocket.base.decoding import decode_strictly
        from sprocket.schemas.choice import SchemaChoice, number_or_subject
        from sprocket.schemas.descriptors import files_of
        from sprocket.schemas.registered import SchemaKind

        given, kind = self.body_schema, SchemaKind(self.body_format or "json")
        if kind is not SchemaKind.PROTOBUF and isinstance(given, bytes):
            given = decode_strictly(given, "bodySchema")
        columns = self._columns()
        subject = self.registry_subject or (None if topic is None else f"{topic}-value")
        return SchemaChoice(
            kind,
            text=given if isinstance(given, str) and columns is None else None,
            files=files_of(given) if isinstance(given, bytes) else (),
            message=self.body_message,
            registry=self._registry(),
            writes=None if subject is None else number_or_subject(subject),
            is_checked=columns is None,
        )

    def _columns(self) -> str | None:
        """The DDL that says the columns of JSON; None where a schema does, or nothing."""
        given = self.body_schema
        if self.body_format != "json" or not isinstance(given, str) or _is_json(given):
            return None
        return given

    def _check_registry(self) -> None:
        if self.registry != PROFILES:
            return
        if self.profile is None:
            raise ConfigError("schemaRegistry profile goes with the option profile")
        for name, given in (
            ("User", self.registry_user), ("Password", self.registry_password),
            ("Token", self.registry_token), ("Authorities", self.registry_authorities),
        ):  # fmt: skip
            if given is not None:
                raise ConfigError(f"give schemaRegistry{name} or schemaRegistry profile, not both")

    def _registry(self) -> Registry | None:
        if self.registry is None:
            return None
        if self.registry == PROFILES and (profile := self.read_profile()) is not None:
            return profile.schema_registry()
        from sprocket.schemas.http_registry import registry_at

        return registry_at(
            self.registry,
            user=self.registry_user,
            password=self.registry_password,
            token=self.registry_token,
            authorities=self.registry_authorities,
        )

    def value_ddl(self, topics: tuple[str, ...]) -> str:
        """The type of the column `value` as DDL, when the user gives no schema.

        Args:
            topics: that are read, or `()` for those of a pattern.

        Raises:
            ConfigError: nothing says it.
            SchemaNotFound, RegistryUnavailable: the registry does not say it.
        """
        from sprocket.schemas.arrow_types import arrow_type, ddl
        from sprocket.schemas.registered_bodies import RegisteredBodies

        columns = self._columns()
        if columns is not None:
            return f"struct<{columns}>"
        if self.body_format == "json" and self.body_schema is None and self.registry is None:
            raise ConfigError(
                "JSON does not say what columns it has: give bodySchema, a JSON Schema or columns "
                "such as `id string, amount double`; or a schema with a column value"
            )
        choice = self.choice(topics[0] if len(topics) == 1 else None)
        codec = choice.codec()
        if isinstance(codec, RegisteredBodies):
            codec = codec.shape()
        return ddl(arrow_type(codec))


@dataclass(frozen=True)
class DecodeOptions(BodyOptions):
    """How a read decodes bodies."""

    fails_on_misfit: bool = option(
        "failOnBadBody",
        values.switch,
        "Fail if a body does not fit `bodyFormat`; otherwise its row has no `value`, the reason in "
        "`value_error`, and a warning counts such rows.",
        default=False,
    )
    event_prefix: str | None = option(
        "cloudEvents",
        values.event_prefix,
        "`true` for a column `event` with the attributes of CloudEvents, and the event's data as "
        "what `bodyFormat` decodes; or the prefix of their properties, if it is not `CE_`.",
    )
