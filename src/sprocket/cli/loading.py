"""Loads the settings of a command. Notes are printed on stderr; errors are raised."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sprocket.base import setting_forms as forms
from sprocket.base.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from sprocket.base.config_files import ConfigFile
    from sprocket.base.loaded_config import LoadedConfig
    from sprocket.client.config import ClientConfig
    from sprocket.remoting.profiles import Profile

#: A configuration file is written by hand, so a larger one must be a mistake.
FILE_BYTES_MAX = 1 << 20


class Program(StrEnum):
    """What starts with a configuration file."""

    BROKER = "broker"
    NAMESERVER = "nameserver"
    STANDALONE = "standalone"
    PROXY = "proxy"
    COMMANDS = "commands"


def kinds() -> list[type]:
    """The configuration classes whose settings may be in files and in the environment."""
    from sprocket.audit.config import AuditConfig
    from sprocket.broker.config import BrokerConfig
    from sprocket.client.config import ClientConfig
    from sprocket.container.config import ContainerConfig
    from sprocket.metrics.config import MetricsConfig
    from sprocket.nameserver.config import NameServerConfig
    from sprocket.proxy.config import ProxyConfig
    from sprocket.remoting.tls.settings import TlsConfig
    from sprocket.store.config import StoreConfig

    return [
        BrokerConfig, StoreConfig, NameServerConfig, TlsConfig, ProxyConfig, ClientConfig,
        AuditConfig, MetricsConfig, ContainerConfig,
    ]  # fmt: skip


def kinds_of(program: Program | None) -> list[type]:
    """The configuration classes that a program loads; all for None."""
    broker, store, nameserver, tls, proxy, client, audit, metrics, container = kinds()
    return {
        Program.BROKER: [broker, store, tls, audit, metrics, container],
        Program.NAMESERVER: [nameserver, tls, audit, metrics],
        Program.STANDALONE: [
            broker,
            store,
            nameserver,
            tls,
            proxy,
            audit,
            metrics,
            container,
        ],
        Program.PROXY: [proxy, tls, metrics],
        Program.COMMANDS: [client],
        None: kinds(),
    }[program]


def read(path: Path) -> ConfigFile:
    """Reads a configuration file.

    Raises:
        ConfigError: it cannot be read.
    """
    from sprocket.base.config_files import ConfigFile
    from sprocket.base.decoding import decode

    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    if len(content) > FILE_BYTES_MAX:
        raise ConfigError(f"{path}: larger than {FILE_BYTES_MAX} bytes, no configuration file")
    text = decode(content)
    if "\0" in text:
        raise ConfigError(f"{path}: contains zero bytes, so it is no text in UTF-8")
    return ConfigFile(str(path), text)


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

    Raises:
        ConfigError: something is wrong; the text has a line for each fault.
    """
    from sprocket.base.config_files import load

    said = {name: value for name, value in (overrides or {}).items() if value is not None}
    pairs = [each.partition("=") for each in given or ()]
    unpaired = [f"--set takes PART.NAME=VALUE, not {key!r}" for key, sign, _ in pairs if not sign]
    try:
        loaded = load(
            kinds,
            file=None if file is None else read(file),
            environment=os.environ,
            overrides={key.strip(): value.strip() for key, sign, value in pairs if sign} | said,
            variables=_variables(),
        )
    except ConfigError as error:
        raise ConfigError("\n".join([*unpaired, str(error)])) from None
    if unpaired:
        raise ConfigError("\n".join(unpaired))
    for text in loaded.notes:
        if text not in _noted:
            _noted.add(text)
            note(text)
    return loaded


def note(text: str) -> None:
    """Prints a note on stderr."""
    typer.echo(f"sprocket: note: {text}", err=True)


def of_servers(
    kinds: Sequence[type],
    *,
    file: Path | None,
    given: Sequence[str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> LoadedConfig:
    """Loads settings as `settings` does, and checks the folders and certificates that they name.

    A server starts with what this returns, and `sprocket config check` checks by it.

    Raises:
        ConfigError: something is wrong; the text has a line for each fault.
    """
    loaded = settings(kinds, file=file, given=given, overrides=overrides)
    faults = [*_folder_faults(loaded), *_tls_faults(loaded)]
    if faults:
        raise ConfigError("\n".join(faults))
    return loaded


def check_profiles(file: Path) -> None:
    """Raises ConfigError if a profile in a file is wrong."""
    from sprocket.base.config_files import is_toml, load_variants
    from sprocket.remoting.profiles import ProfileConfig

    if is_toml(content := read(file)):
        load_variants(ProfileConfig, content)


def _folder_faults(loaded: LoadedConfig) -> Iterator[str]:
    """Folders that can neither be used nor made."""
    for declared in loaded.declared.values():
        if declared.about.form not in (forms.folder, forms.folders):
            continue
        value = getattr(loaded.of_part(declared.part), declared.name)
        is_file = declared.key == "nameserver.kv_path"
        for path in (value,) if isinstance(value, str) else value or ():
            whole = os.path.abspath(path)
            if complaint := _folder_fault(os.path.dirname(whole) if is_file else whole):
                origin = loaded.origins[declared.key]
                yield f"{origin}: {declared.key} is {path!r}, but {complaint}"


def _tls_faults(loaded: LoadedConfig) -> Iterator[str]:
    """Files of TLS that cannot be read or do not go together."""
    from sprocket.base.config import check
    from sprocket.remoting.tls.settings import TlsConfig

    if TlsConfig not in loaded.kinds:
        return
    config = loaded.of(TlsConfig)
    if config.file is None and not config.is_serving and config.outgoing_tls() is None:
        return  # most servers, which need not load what follows
    from sprocket.remoting.tls.certificates import asking, serving

    try:
        whole = config.whole()
        check(whole)
        if whole.is_serving:
            serving(whole)
        if (outgoing := whole.outgoing_tls()) is not None:
            asking(outgoing)
    except ConfigError as error:
        yield from str(error).split("\n")


def _folder_fault(folder: str) -> str | None:
    there = folder
    while not os.path.lexists(there):
        there = os.path.dirname(there)
    if not os.path.isdir(there):
        return f"{there} is no folder"
    if not os.access(there, os.W_OK | os.X_OK):
        return f"this user cannot write in {there}"
    return None


def _variables() -> set[str]:
    """All variables that mean something to some command."""
    from sprocket.base.config_files import variables_of

    return {*variables_of(kinds()), *_OTHER_VARIABLES}


_OTHER_VARIABLES = (
    "SPROCKET_CONFIG",
    "SPROCKET_FILTER_SECRET",
    "SPROCKET_LOG",
    "SPROCKET_NAMESERVERS",
    "SPROCKET_PROFILE",
)
#: Notes that this process has printed; a command may load settings more than once.
_noted: set[str] = set()
#: Client settings that are options of the command.
_client_options: dict[str, Any] = {}
#: The profile that the command is run with.
_profiles: list[Profile] = []


def take_client_options(options: Mapping[str, Any], profile: Profile | None = None) -> None:
    """Records the command's profile, and its options that are client settings, by `client.name`."""
    _client_options.clear()
    _client_options.update(options)
    _profiles[:] = [profile] if profile is not None else []


def chosen_profile() -> Profile | None:
    """The profile that the command is run with."""
    return _profiles[0] if _profiles else None


def check_only_profile() -> None:
    """Raises UsageError if the profile does not say everything, since there are options of TLS."""
    if _profiles and _client_options:
        raise UsageError("give --profile or options of TLS, not both: the profile has them")


def client() -> ClientConfig:
    """The client settings: table `[client]` of the file SPROCKET_CONFIG, SPROCKET_CLIENT_…, and
    the command's own options. With a profile, keys and TLS are its own.
    """
    from dataclasses import replace

    from sprocket.client.config import ClientConfig

    file = os.environ.get("SPROCKET_CONFIG")
    path = Path(file) if file else None
    found = settings([ClientConfig], file=path, overrides=_client_options).of(ClientConfig)
    profile = chosen_profile()
    if profile is None:
        return found
    given = {key.removeprefix("client."): value for key, value in _client_options.items()}
    return replace(found, **profile.read().access_settings() | given)


def credentials() -> dict[str, Any]:
    """The access keys and TLS of `client`, as arguments for any client's configuration class."""
    return client().access_settings()
