"""Loads the settings of a command. Notes are printed on stderr; errors are raised."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sprocket.base.errors import ConfigError

if TYPE_CHECKING:
    from sprocket.base.config_files import ConfigFile, LoadedConfig
    from sprocket.client.config import ClientConfig

#: A configuration file is written by hand, so a larger one must be a mistake.
FILE_BYTES_MAX = 1 << 20


def read(path: Path) -> ConfigFile:
    """Reads a configuration file.

    Raises:
        ConfigError: it cannot be read.
    """
    from sprocket.base.config_files import ConfigFile

    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
        if len(content) > FILE_BYTES_MAX:
            raise ConfigError(f"{path}: larger than {FILE_BYTES_MAX} bytes, no configuration file")
        return ConfigFile(str(path), content.decode("utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not a text in UTF-8") from None


def settings(
    kinds: Sequence[type],
    *,
    file: Path | None,
    given: Sequence[str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> LoadedConfig:
    """Loads settings from file, environment and command line, and prints notes on stderr.

    Args:
        kinds: the configuration classes.
        file: the configuration file, if any.
        given: `part.name=value` texts.
        overrides: values of the command's own options; None counts as not given.
    """
    from sprocket.base.config_files import load

    said = {name: value for name, value in (overrides or {}).items() if value is not None}
    loaded = load(
        kinds,
        file=None if file is None else read(file),
        environment=os.environ,
        overrides={**dict(map(_split, given or ())), **said},
    )
    for note in loaded.notes:
        typer.echo(f"sprocket: note: {note}", err=True)
    return loaded


def client() -> ClientConfig:
    """The client settings: table `[client]` of the file SPROCKET_CONFIG, and SPROCKET_CLIENT_…."""
    from sprocket.client.config import ClientConfig

    file = os.environ.get("SPROCKET_CONFIG")
    return settings([ClientConfig], file=Path(file) if file else None).of(ClientConfig)


def credentials() -> dict[str, Any]:
    """The access keys of `client`, as arguments for any client's configuration class."""
    found = client()
    return {
        "access_key": found.access_key,
        "secret_key": found.secret_key,
        "security_token": found.security_token,
    }


def _split(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator:
        raise ConfigError(f"--set takes PART.NAME=VALUE, not {text!r}")
    return key.strip(), value.strip()
