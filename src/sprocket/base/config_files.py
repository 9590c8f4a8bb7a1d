"""Loads settings from a file, then the environment, then the command line; the later one wins.

These are pure functions over text; the caller reads the file. A file is TOML with one table per
part (`[broker]`, `[store]`, `[nameserver]`), or one of RocketMQ's own `broker.conf` /
`.properties`, where each setting has RocketMQ's name or `part.name`. Environment variables are
called `SPROCKET_<PART>_<NAME>`. `sprocket.base.setting_values` says how texts become values.

All faults of all sources are reported together, a line for each.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from sprocket.base.config import Declared, declared_by, part_of, settings_of
from sprocket.base.decoding import undecoded
from sprocket.base.errors import ConfigError
from sprocket.base.json_files import as_properties, is_json
from sprocket.base.loaded_config import LoadedConfig
from sprocket.base.rocketmq_files import take_properties
from sprocket.base.rocketmq_settings import rocketmq_settings
from sprocket.base.suggestions import nearest

T = TypeVar("T")

#: Tables that a file may have even if the command that reads it does not use them.
ALL_PARTS = (
    "audit", "broker", "client", "container", "metrics", "nameserver", "profile", "proxy", "store",
    "tls",
)  # fmt: skip

#: Variables that Kubernetes sets in every container for a service called `sprocket…`.
_OF_KUBERNETES = re.compile(r".*_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP)(_\w+)?)?)")


class ConfigFile(NamedTuple):
    """A configuration file that has been read: its name (for messages) and its text.

    Bytes that were not UTF-8 are lone surrogates in it; see `sprocket.base.decoding`.
    """

    name: str
    text: str


def load(
    kinds: Sequence[type],
    *,
    file: ConfigFile | None = None,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
    variables: Iterable[str] | None = None,
) -> LoadedConfig:
    """Loads the configurations of several parts from the same sources.

    Args:
        kinds: configuration classes. If two of them declare the same name of RocketMQ's, a value
            in a RocketMQ file belongs to the first.
        file: TOML or RocketMQ properties; suffix and content decide which.
        environment: all environment variables; only `SPROCKET_…` are read.
        overrides: from `part.name` to a value, or to its text; None is ignored.
        variables: names of variables that mean something besides the settings of `kinds`. With
            them, any other variable `SPROCKET_…` is a note; without, one that begins with a
            part's name.

    Raises:
        ConfigError: settings are unknown, ill-typed, out of bounds or do not go together. The text
            has a line for each, with the place, the name and the value, and for an unknown name
            the most similar known one.
    """
    loaded = LoadedConfig(kinds)
    if file is not None:
        if is_toml(file):
            _take_toml(loaded, file)
        else:
            _take_rocketmqs(loaded, file)
    _take_environment(loaded, environment or {}, variables)
    _take_overrides(loaded, overrides or {})
    loaded.make()
    return loaded


def _take_rocketmqs(loaded: LoadedConfig, file: ConfigFile) -> None:
    text = file.text
    if is_json(text):
        try:
            text = as_properties(text)
        except ValueError as error:
            loaded.faults.append(f"{file.name}: {error}")
            return
    take_properties(loaded, file.name, text)


def variables_of(kinds: Iterable[type]) -> set[str]:
    """The environment variables of all settings of these classes."""
    return {each.environment for kind in kinds for each in settings_of(kind).values()}


def is_toml(file: ConfigFile) -> bool:
    """Whether a file is TOML; otherwise it is one of RocketMQ's."""
    if is_json(file.text):
        return False
    if file.name.endswith(".toml"):
        return True
    if file.name.endswith(".properties"):
        return False
    return re.search(r"^\s*\[\s*[\w.\"-]+\s*\]\s*(#.*)?$", file.text, re.MULTILINE) is not None


def load_variants(kind: type[T], file: ConfigFile) -> dict[str, T]:
    """The configurations in the tables `[part.NAME]` of a file, by name.

    Args:
        kind: the configuration class of each.
        file: in TOML.

    Raises:
        ConfigError: the file is not TOML, or as for `load`.
    """
    part = part_of(kind)
    settings = {each.name: each for each in declared_by((kind,)).values()}
    if not is_toml(file):
        raise ConfigError(f"{file.name}: tables [{part}.NAME] need a file in TOML")
    faults: list[str] = []
    found = {}
    tables = _toml_tables(file, faults).get(part, {})
    for name, table in tables.items() if isinstance(tables, dict) else ():
        loaded = LoadedConfig([kind])
        if isinstance(table, dict):
            _take_table(loaded, file, f"{part}.{name}", settings, table)
        else:
            where = f"{file.name}:{_toml_line(file.text, part, name)}"
            loaded.faults.append(f"{where}: '{part}.{name}' is no table: write [{part}.NAME]")
        try:
            loaded.make()
            found[name] = loaded.of(kind)
        except ConfigError as error:
            faults.append(str(error))
    if faults:
        raise ConfigError("\n".join(faults))
    return found


def _toml_tables(file: ConfigFile, faults: list[str]) -> dict[str, Any]:
    try:
        return tomllib.loads(file.text)
    except tomllib.TOMLDecodeError as error:
        faults.append(f"{file.name}: not valid TOML: {error}")
    except RecursionError:
        faults.append(f"{file.name}: not valid TOML: it is nested too deep")
    return {}


def _take_toml(loaded: LoadedConfig, file: ConfigFile) -> None:
    parts = {part_of(kind): settings_of(kind) for kind in loaded.kinds}
    for part, table in _toml_tables(file, loaded.faults).items():
        where = f"{file.name}:{_toml_line(file.text, None, part)}"
        if not isinstance(table, dict):
            hint = _elsewhere(loaded, part) or f"; it belongs into a table such as [{min(parts)}]"
            loaded.faults.append(f"{where}: '{part}' stands outside a table{hint}")
        elif part in parts:
            _take_table(loaded, file, part, parts[part], table)
        elif part not in ALL_PARTS:
            loaded.faults.append(f"{where}: unknown table [{part}]{nearest(part, ALL_PARTS)}")


def _take_table(
    loaded: LoadedConfig,
    file: ConfigFile,
    header: str,
    settings: Mapping[str, Declared],
    table: Mapping[str, Any],
) -> None:
    for name, value in table.items():
        where = f"{file.name}:{_toml_line(file.text, header, name)}"
        if name in settings:
            _set_toml(loaded, settings[name], value, where)
        else:
            hint = _elsewhere(loaded, name) or nearest(name, settings)
            loaded.faults.append(f"{where}: unknown setting '{header}.{name}'{hint}")


def _elsewhere(loaded: LoadedConfig, name: str) -> str:
    """Where a name belongs: it is RocketMQ's, or that of a setting of another part."""
    for each in loaded.declared.values():
        if name in each.rocketmq_names:
            return f"; that is RocketMQ's name for '{each.name}' in the table [{each.part}]"
    for each in loaded.declared.values():
        if name == each.name:
            return f"; it belongs into the table [{each.part}]"
    if reason := rocketmq_settings().without_effect.get(name):
        return f"; that is a setting of RocketMQ, which has no effect here, since {reason}"
    return ""


def _set_toml(loaded: LoadedConfig, declared: Declared, value: Any, where: str) -> None:
    if isinstance(value, list):
        value = tuple(value)
    texts = value if isinstance(value, tuple) else (value,)
    if any(isinstance(each, str) and undecoded(each) for each in texts):
        loaded.set_text(declared, next(t for t in texts if undecoded(str(t))), where)
    elif isinstance(value, str) and (declared.is_size or declared.type in (tuple, str)):
        loaded.set_text(declared, value, where)
    else:
        loaded.set(declared, value, where)


def _toml_line(text: str, part: str | None, name: str) -> int:
    """The number of the line where a table, or a key of a table, begins; 1 if it is not found.

    `tomllib` reports no positions, so regular expressions search for it. They serve error
    messages only, and need not understand every form of TOML.
    """
    key = re.compile(rf"\s*[\"']?{re.escape(name)}[\"']?\s*[=.]")
    dotted = re.compile(rf"\s*{part}\s*\.\s*{re.escape(name)}\s*=")
    table: str | None = None
    for number, line in enumerate(text.split("\n"), 1):
        header = re.match(r"\s*\[\s*([^\]]+?)\s*\]", line)
        if header:
            table = header[1].strip("\"'")
            if part is None and table.split(".")[0] == name:
                return number
        elif (table == part and key.match(line)) or (table is None and dotted.match(line)):
            return number
    return 1


def _take_environment(
    loaded: LoadedConfig, environment: Mapping[str, str], variables: Iterable[str] | None
) -> None:
    """Unknown variables give warnings only: container platforms set some with our prefix."""
    environment = {name: text for name, text in environment.items() if name[:9] == "SPROCKET_"}
    if not environment:
        return
    known = {each.environment: each for each in loaded.declared.values()}
    others: Collection[str] = () if variables is None else set(variables)
    prefixes = tuple(f"SPROCKET_{part_of(kind)}_".upper() for kind in loaded.kinds)
    if variables is not None:
        prefixes = ("SPROCKET_",)
    for name, text in sorted(environment.items()):
        where = f"environment variable {name}"
        if name in known:
            if _OF_KUBERNETES.fullmatch(name) and re.match(r"(tcp|udp)://", text):
                loaded.faults.append(
                    f"{where}: {known[name].key} takes {known[name].takes()}, not "
                    f"{known[name].shown(text)}; "
                    "Kubernetes sets it for a service of this name: set enableServiceLinks: false"
                )
                continue
            loaded.set_text(known[name], text, where)
        elif (
            name.startswith(prefixes) and name not in others and not _OF_KUBERNETES.fullmatch(name)
        ):
            hint = _nearest_variable(name, {*known, *others})
            loaded.notes.append(f"{where} sets nothing{hint}")


def _nearest_variable(name: str, known: Iterable[str]) -> str:
    # The prefix, which all have, would make any two of them similar.
    start = len("SPROCKET_")
    hint = nearest(name[start:], {each[start:] for each in known})
    return hint.replace("mean '", "mean 'SPROCKET_")


def _take_overrides(loaded: LoadedConfig, overrides: Mapping[str, Any]) -> None:
    known = loaded.declared
    for key, value in overrides.items():
        if value is None:
            continue
        where = f"command line ({key})"
        if key not in known:
            hint = _command_hint(loaded, key) or nearest(key, known)
            loaded.faults.append(f"{where}: unknown setting '{key}'{hint}")
        elif isinstance(value, str):
            loaded.set_text(known[key], value, where)
        else:
            loaded.set(known[key], value, where)


def _command_hint(loaded: LoadedConfig, key: str) -> str:
    for each in loaded.declared.values():
        if key in each.rocketmq_names:
            return f"; that is RocketMQ's name for '{each.key}'"
    return ""
