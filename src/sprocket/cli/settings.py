"""`sprocket config`: lists all settings, shows their values and origins, checks files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sprocket.cli import loading, render
from sprocket.cli.loading import Program
from sprocket.cli.options import ConfigFile, Json, Set, command

if TYPE_CHECKING:
    from sprocket.base.config import Declared
    from sprocket.base.loaded_config import LoadedConfig

#: Parts whose settings may be in files and in the environment.
_LOADED = frozenset({"broker", "store", "nameserver", "tls", "proxy", "client", "audit"})


app = typer.Typer(
    help="Settings: list all, show values, check a file; get and set those of brokers that run."
)


def in_programs() -> list[type]:
    """The configuration classes that programs pass to their clients."""
    from sprocket.client import config

    return [config.ProducerConfig, config.ConsumerConfig, config.LitePullConfig, config.PullConfig]


@command(
    app,
    "show",
    "sprocket config show",
    "sprocket config show --config broker.conf",
    "SPROCKET_STORE_FLUSH=SYNC_FLUSH sprocket config show --json",
)
def show(config: ConfigFile = None, given: Set = None, as_json: Json = False) -> None:
    """Prints every setting with its value and the origin of the value."""
    from sprocket.base.config import SECRET_MASK, settings_of

    loaded = loading.settings(loading.kinds(), file=config, given=given)
    kept, changed = _kept(loaded)
    rows = []
    for kind in loading.kinds():
        values: Any = kept.get(kind) or loaded.of(kind)
        for each in settings_of(kind).values():
            value = getattr(values, each.name)
            if each.about.is_secret and value is not None:
                value = SECRET_MASK
            rows.append((each.key, value, changed.get(each.key, loaded.origins[each.key])))
    if as_json:
        for key, value, origin in rows:
            render.json({"setting": key, "value": value, "from": origin})
        return
    render.table(("setting", "value", "from"), ((key, plain(v), origin) for key, v, origin in rows))


def _kept(loaded: LoadedConfig) -> tuple[dict[type, Any], dict[str, str]]:
    """The settings of a broker with the changes that its next start will apply, by class; and
    where those come from that were changed."""
    from sprocket.base.config import settings_of
    from sprocket.base.kept_settings import KeptSettings
    from sprocket.broker.config import BrokerConfig
    from sprocket.broker.live_settings import CHANGED_FILE, why_fixed
    from sprocket.runtime.disk import SystemDisk
    from sprocket.store.config import StoreConfig

    kinds: tuple[type, ...] = (BrokerConfig, StoreConfig)
    configured: list[Any] = [loaded.of(kind) for kind in kinds]
    path = f"{configured[1].path}/config/{CHANGED_FILE}"
    kept = KeptSettings(SystemDisk(), path, configured, lambda each: why_fixed(each) is None)
    started = kept.load()
    origins = {
        each.key: "set while the broker ran"
        for kind, before, after in zip(kinds, configured, started, strict=True)
        for name, each in settings_of(kind).items()
        if getattr(before, name) != getattr(after, name)
    }
    return dict(zip(kinds, started, strict=True)), origins


@command(
    app,
    "reference",
    "sprocket config reference",
    "sprocket config reference --json",
)
def reference(as_json: Json = False) -> None:
    """Prints the reference of all settings as Markdown."""
    if as_json:
        for each in _all_settings():
            render.json(_facts(each))
        return
    typer.echo("\n".join(markdown()))


@command(
    app,
    "check",
    "sprocket config check /opt/rocketmq/conf/broker.conf",
    "sprocket config check sprocket.toml --for standalone",
)
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="TOML, or a RocketMQ broker.conf.")],
    program: Annotated[
        Program | None,
        typer.Option(
            "--for",
            help="The program that is to start with it. By default a RocketMQ file is for a "
            "broker, or a name server if its name or content says so, and TOML for all.",
        ),
    ] = None,
) -> None:
    """Checks a configuration file as a start would; the exit code is 0 if it is valid."""
    chosen = program or _program_of(file)
    loading.of_servers(loading.kinds_of(chosen), file=file)
    loading.check_profiles(file)
    words = {None: "", Program.STANDALONE: ""}.get(chosen, f" for a {chosen and chosen.value}")
    typer.echo(f"{file}: valid{words}")


def _program_of(file: Path) -> Program | None:
    """The program that a file is for; None for all."""
    from sprocket.base.config import settings_of
    from sprocket.base.config_files import is_toml
    from sprocket.base.java_properties import properties

    content = loading.read(file)
    if is_toml(content):
        return None
    by_kind = [
        {name for each in settings_of(kind).values() for name in (each.key, *each.rocketmq_names)}
        for kind in loading.kinds()
    ]
    of_broker, of_nameserver = by_kind[0] | by_kind[1], by_kind[2]
    names = {each.key for each in properties(content.text)}
    if names & (of_broker - of_nameserver):
        return Program.BROKER
    says_so = re.search("namesrv|name_?server", file.name, re.IGNORECASE)
    if says_so or names & (of_nameserver - of_broker):
        return Program.NAMESERVER
    return Program.BROKER


def markdown() -> Iterator[str]:
    """The lines of the reference page."""
    from sprocket.base.config import settings_of

    yield "# Settings"
    yield ""
    yield (
        "A setting can be in a TOML file (in the table of its part), in a `broker.conf` by "
        "RocketMQ's own name, in an environment variable, or in `--set`. Later ones in this list "
        "win. Commands that send requests to servers use the part `[client]`."
    )
    for kind in loading.kinds():
        declared = list(settings_of(kind).values())
        yield from ("", f"## [{declared[0].part}]", "")
        yield "| setting | takes | default | RocketMQ's name | environment | meaning |"
        yield "|---|---|---|---|---|---|"
        for each in declared:
            yield _row(each, f"`{each.environment}`")
    from sprocket.remoting.profiles import ProfileConfig

    yield from ("", "## [profile.NAME]", "")
    yield (
        "A cluster, and as whom it is asked: for commands with `--profile NAME`, and for Spark's "
        "option `profile`. The settings of `[client]` and the environment do not add to it."
    )
    yield from ("", "| setting | takes | default | RocketMQ's name | meaning |")
    yield "|---|---|---|---|---|"
    yield from map(_row, settings_of(ProfileConfig).values())
    for kind in in_programs():
        yield from ("", f"## {kind.__name__}", "")
        yield f"Set in programs: `{kind.__name__}(…)` has these, and those of `[client]`."
        yield ""
        yield "| setting | takes | default | RocketMQ's name | meaning |"
        yield "|---|---|---|---|---|"
        for each in _own(kind):
            yield _row(each)


def _row(each: Declared, *more: str) -> str:
    names = ", ".join(f"`{name}`" for name in each.rocketmq_names)
    cells = (f"`{each.name}`", takes(each), f"`{plain(each.default)}`", names, *more)
    return f"| {' | '.join(cells)} | {each.about.doc} |"


def _own(kind: type) -> Iterator[Declared]:
    """Settings of a client's class, without those that all clients have."""
    from sprocket.base.config import settings_of
    from sprocket.client.config import ClientConfig

    common = settings_of(ClientConfig)
    yield from (each for name, each in settings_of(kind).items() if name not in common)


def takes(each: Declared) -> str:
    """The type of a setting's value, in words, with its bounds."""
    from sprocket.base.config import plain_number

    about = each.about
    if about.choices is not None:
        return " or ".join(f"`{choice}`" for choice in about.choices)
    words = "a size" if each.is_size else each.takes()
    low = "" if about.minimum is None else f" from {plain_number(about.minimum)}"
    high = "" if about.maximum is None else f" to {plain_number(about.maximum)}"
    return words + low + high


def plain(value: Any) -> str:
    """A value as it is written in a file."""
    if value is None or value == ():
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    return ";".join(value) if isinstance(value, tuple) else str(value)


def _all_settings() -> Iterator[Declared]:
    from sprocket.base.config import settings_of
    from sprocket.remoting.profiles import ProfileConfig

    for kind in (*loading.kinds(), ProfileConfig):
        yield from settings_of(kind).values()
    for kind in in_programs():
        yield from _own(kind)


def _facts(each: Declared) -> dict[str, Any]:
    return {
        "setting": each.key,
        "type": each.type.__name__,
        "default": each.default,
        "minimum": each.about.minimum,
        "maximum": each.about.maximum,
        "choices": each.about.choices,
        "rocketmq": each.rocketmq_names,
        "environment": each.environment if each.part in _LOADED else None,
        "meaning": each.about.doc,
    }
