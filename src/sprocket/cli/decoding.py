"""Bodies decoded for people: the options of `--decode`, and what is shown of a body."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sprocket.base.errors import UsageError

if TYPE_CHECKING:
    from sprocket.schemas.body_codec import BodyCodec
    from sprocket.schemas.choice import Registry as ChosenRegistry

#: The format that a registry says.
AUTO = "auto"
#: The registry that is the profile's.
PROFILES = "profile"

Decode = Annotated[
    str | None,
    typer.Option(
        "--decode",
        metavar="json|avro|protobuf|auto",
        help="Show bodies decoded; auto: as the registry says.",
    ),
]
SchemaFile = Annotated[
    str | None,
    typer.Option(
        "--schema",
        metavar="FILE",
        help="With --decode: a JSON Schema, a schema of Avro (.avsc), or a descriptor set of "
        "Protobuf.",
    ),
]
MessageName = Annotated[
    str | None,
    typer.Option(
        "--message", metavar="NAME", help="Full name of Protobuf's message; else the file's first."
    ),
]
Registry = Annotated[
    str | None,
    typer.Option(
        "--registry",
        metavar="URL|FOLDER|profile",
        help="Where schemas are whose numbers bodies begin with; profile: as --profile says. "
        "Otherwise its user and password, or its token, are in SPROCKET_REGISTRY_USER, "
        "SPROCKET_REGISTRY_PASSWORD and SPROCKET_REGISTRY_TOKEN.",
    ),
]


@dataclass(frozen=True, slots=True)
class DecodedBody:
    """What is shown of a body.

    Attributes:
        text: its value as JSON in one line; None if it does not fit.
        problem: why it does not fit.
    """

    text: str | None
    problem: str | None = None


class BodyDecoding:
    """Decodes bodies one by one, and counts those that do not fit."""

    def __init__(self, codec: BodyCodec) -> None:
        self._codec = codec
        self.misfits = 0
        self.count = 0

    async def decoded(self, body: bytes) -> DecodedBody:
        """What is shown of a body.

        Raises:
            RegistryUnavailable: its schema has to be fetched, and cannot be.
        """
        from sprocket.schemas.errors import BodyMismatch
        from sprocket.schemas.shown import json_of

        await self._codec.prepare(body)
        self.count += 1
        try:
            return DecodedBody(json_of(self._codec.decode(body)))
        except BodyMismatch as error:
            self.misfits += 1
            return DecodedBody(None, str(error))


def decoding(
    kind: str | None, schema: str | None, message: str | None, registry: str | None
) -> BodyDecoding | None:
    """What the options choose; None for bodies as they are.

    Raises:
        UsageError: they do not go together, or name no schema.
    """
    if kind is None and registry is None:
        if schema is not None or message is not None:
            raise UsageError("--schema and --message go with --decode")
        return None
    from sprocket.schemas.choice import choose

    is_auto = kind is None or kind == AUTO
    if is_auto and registry is None:
        raise UsageError("--decode auto needs --registry, which says the format of each body")
    choice = choose(
        None if is_auto else kind,
        schema=schema,
        message=message,
        registry=None if registry is None else registry_of(registry),
    )
    return BodyDecoding(choice.codec())


def codec_of(registry: str | None) -> BodyCodec | None:
    """The codec of bodies that begin with the number of a schema; None without a registry.

    Raises:
        UsageError: it is neither a URL nor a folder.
    """
    if registry is None:
        return None
    from sprocket.schemas.choice import choose

    return choose(None, registry=registry_of(registry)).codec()


def registry_of(text: str) -> ChosenRegistry:
    """The registry that an option names, with the secrets of the profile or of the environment.

    Raises:
        UsageError: it is neither a URL nor a folder, or there is no profile.
        ConfigError: the profile has no registry.
    """
    if text == PROFILES:
        from sprocket.cli import loading

        profile = loading.chosen_profile()
        if profile is None:
            raise UsageError("--registry profile goes with --profile")
        return profile.read().schema_registry()
    if "://" not in text and not Path(text).is_dir():
        raise UsageError(f"--registry {text}: neither a URL nor a folder")
    from sprocket.schemas.http_registry import ENVIRONMENT, registry_at

    given: dict[str, Any] = {name: os.environ.get(each) for name, each in ENVIRONMENT.items()}
    return registry_at(text, **given)
