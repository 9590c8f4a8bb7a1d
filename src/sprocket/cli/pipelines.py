"""`sprocket pipeline`: pipelines on Spark; each command is built from its job's declaration.

A job is declared once, in `sprocket.spark.pipelines`; its fields become options here. A pipeline
and Spark are loaded only when the pipeline is used.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core
import typer.main

from sprocket.base.errors import SprocketError, UsageError
from sprocket.cli import pipeline_report, render
from sprocket.cli.access_options import with_access
from sprocket.cli.options import NAMESERVER, Json, NameServers, command, examples

if TYPE_CHECKING:
    from dataclasses import Field

    from pyspark.sql import SparkSession

    from sprocket.spark.pipelines.parts.job import FieldInfo, Job
    from sprocket.spark.pipelines.parts.progress import Progress, Watch
    from sprocket.spark.pipelines.parts.report import Report

INTERRUPTED = 130

_RUN = "sprocket pipeline run"
#: Purpose and examples by class of `sprocket.spark.pipelines`; commands are these in lower case.
_ABOUT: dict[str, tuple[str, tuple[str, ...]]] = {
    "Archive": (
        "topics to Parquet, Delta or Iceberg, each message exactly once",
        (
            f"{_RUN} archive --topic orders --to orders-archive",
            f"{_RUN} archive --topic orders --to s3a://lake/orders --body json --follow",
            f"{_RUN} archive --topic orders --to orders-table --format delta --compact-every 100",
            f"{_RUN} archive --topic orders --to orders-ice --format iceberg --partition-by date",
            f'{_RUN} archive --pattern "orders.*" --to archive --body json '
            '--schema "amount double, items array<string>"',
        ),
    ),
    "Apply": (
        "change data of Canal or Debezium to a table of Delta or Iceberg, each change once",
        (
            f"{_RUN} apply --topic shop_orders --to orders",
            f"{_RUN} apply --topic shop --to ice --format iceberg --table shop.orders --follow",
            f'{_RUN} apply --topic o --to orders --key id --schema "id bigint, paid boolean"',
        ),
    ),
    "Replay": (
        "an archive, or a time range of a topic, back to a topic, at a limited rate",
        (
            f"{_RUN} replay --archive orders-archive --to orders-again --rate 500",
            f"{_RUN} replay --topic orders --since 2h --until 1h --to orders-again",
            f"{_RUN} replay --archive orders-archive --to paid --where \"tag = 'paid'\"",
        ),
    ),
    "DeadLetters": (
        "dead letters of groups: reasons and counts; resend some of them",
        (
            f"{_RUN} deadletters --report letters.html",
            f"{_RUN} deadletters --group billing --since 1d --send-back group",
            f"{_RUN} deadletters --where \"origin = 'orders' AND reconsume_times > 3\" --json",
        ),
    ),
    "Lag": (
        "lag of groups over time",
        (
            f"{_RUN} lag --to lag-samples --every 10",
            f"{_RUN} lag --to lag-samples --group billing --rounds 360 --report lag.html",
            f"{_RUN} lag --to lag-samples --rounds 0 --json",
            f"{_RUN} lag --to lag-table --format delta --every 60",
        ),
    ),
    "Volume": (
        "messages and bytes by topic, tag and minute",
        (
            f"{_RUN} volume --topic orders --since 1d",
            f'{_RUN} volume --pattern ".*" --to volume-counts --report volume.html',
            f"{_RUN} volume --topic orders --to volume-table --format iceberg",
        ),
    ),
    "Trace": (
        "latency from sender to consumer, from RocketMQ's trace messages",
        (f"{_RUN} trace --since 1h --report latency.html",),
    ),
    "Mirror": (
        "topics of one cluster copied to another, offsets translated",
        (
            f"{_RUN} mirror --topic orders --to-nameserver 10.0.0.9:9876 --state orders-mirror",
            f"{_RUN} mirror --topic orders --to-nameserver 10.0.0.9:9876 --state orders-mirror "
            "--group billing --follow",
            f"{_RUN} mirror --profile here --to-profile elsewhere --topic orders --state m",
        ),
    ),
}
#: The class of each command.
PIPELINES = {name.lower(): name for name in _ABOUT}

Master = Annotated[
    str,
    typer.Option(
        "--master", metavar="URL", help="Where Spark runs: local[*], local[2], spark://host:7077."
    ),
]
Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="NAME=VALUE", help="A setting of Spark; may be given again."),
]
ReportFile = Annotated[
    Path | None,
    typer.Option("--report", metavar="FILE", help="Write the report as one HTML page."),
]

app = typer.Typer(help="Pipelines on Spark: archive, replay, dead letters, lag, volume, …")


@command(app, "list", "sprocket pipeline list", "sprocket pipeline list --json")
def list_pipelines(as_json: Json = False) -> None:
    """Lists the pipelines."""
    rows = [(name.lower(), what) for name, (what, _) in _ABOUT.items()]
    if as_json:
        for name, what in rows:
            render.json({"pipeline": name, "what": what})
        return
    render.table(("pipeline", "what"), rows)


class Commands(dict[str, Any]):
    """The pipelines' commands, each built when it is looked up."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(PIPELINES))

    def __getitem__(self, name: str) -> Any:
        if super().__getitem__(name) is None:
            self[name] = _made(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        if name not in self:
            return default
        return self[name]

    def items(self) -> Any:
        return [(name, self[name]) for name in self]

    def values(self) -> Any:
        return [self[name] for name in self]


class Pipelines(typer.core.TyperGroup):
    """`sprocket pipeline run`: one command for each pipeline."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = Commands()


_run = typer.Typer(
    cls=Pipelines,
    no_args_is_help=True,
    help="Runs a pipeline.",
    epilog=examples(f"{_RUN} archive --topic orders --to orders-archive"),
)


@_run.callback()
def _nothing() -> None:
    """Runs a pipeline. The same command, run again, continues where it stopped."""


app.add_typer(_run, name="run")


def _made(name: str) -> Any:
    """The command of a pipeline."""
    from sprocket.spark import pipelines

    kind: type[Job] = getattr(pipelines, PIPELINES[name])
    alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
    alone.command(name, epilog=examples(*_ABOUT[PIPELINES[name]][1]))(_function(name, kind))
    return typer.main.get_command(alone)


def _function(name: str, kind: type[Job]) -> Callable[..., None]:
    """A function whose parameters are the job's fields and the options of all pipelines."""
    from sprocket.spark.pipelines.parts.job import settings

    def run(**given: Any) -> None:
        shared = {each: given.pop(each) for each in _SHARED}
        _run_job(kind(**_values(kind, given)), name, **shared)

    parameters = [_parameter(one, said) for one, said in settings(kind)]
    for each, (annotation, default) in _SHARED.items():
        parameters.append(_keyword(each, annotation, default))
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__doc__ = kind.__doc__
    return with_access(run, asks_by="nameservers")


_SHARED: dict[str, tuple[Any, Any]] = {
    "master": (Master, "local[*]"),
    "conf": (Conf, None),
    "report": (ReportFile, None),
    "as_json": (Json, False),
}
_TYPES: dict[str, Any] = {
    "text": str | None,
    "words": list[str] | None,
    "whole": int | None,
    "number": float | None,
    "switch": bool,
    "time": str | None,
    "profile": str | None,
}


def _parameter(one: Field[Any], said: FieldInfo) -> inspect.Parameter:
    from dataclasses import MISSING

    if one.name == "nameservers":
        return _keyword(one.name, NameServers, NAMESERVER)
    is_needed = one.default is MISSING
    help_ = said.doc + (f" ({', '.join(said.choices)})" if said.choices else "")
    type_ = str if is_needed else _TYPES[said.kind]
    option = typer.Option(
        f"--{said.option}",
        help=help_,
        metavar=_METAVARS.get(said.kind),
        autocompletion=_completion(said.choices),
    )
    default = inspect.Parameter.empty if is_needed else one.default or None
    return _keyword(one.name, Annotated[type_, option], False if type_ is bool else default)


def _completion(choices: tuple[str, ...]) -> Callable[[str], list[str]] | None:
    """What the Tab key offers for an option that takes one of some words."""
    if not choices:
        return None
    return lambda incomplete: [each for each in choices if each.startswith(incomplete)]


_METAVARS = {"time": "TIME", "whole": "COUNT", "number": "NUMBER", "profile": "NAME"}


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
    )


def _values(kind: type[Job], given: Mapping[str, Any]) -> dict[str, Any]:
    """The job's fields that were given on the command line; others keep their defaults."""
    from sprocket.cli import loading
    from sprocket.cli.times import between
    from sprocket.remoting.profiles import Profile
    from sprocket.spark.pipelines.parts.job import settings
    from sprocket.spark.pipelines.parts.servers import AccessKeys

    found: dict[str, Any] = {}
    for one, said in settings(kind):
        value = given[one.name]
        if value is None:
            continue
        if said.kind == "time":
            value = between(value, None)[0]
        elif said.kind == "profile":
            value = Profile.named(value)
        found[one.name] = tuple(value) if said.kind == "words" else value
    if (profile := loading.chosen_profile()) is not None:
        loading.check_only_profile()
        return found | {"profile": profile}
    set_ = loading.client()
    if set_.access_key and set_.secret_key:
        found["keys"] = AccessKeys(set_.access_key, set_.secret_key, set_.security_token)
    found["tls"] = set_.tls_of_client()
    return found


def _run_job(
    job: Job,
    name: str,
    *,
    master: str,
    conf: list[str] | None,
    report: Path | None,
    as_json: bool,
) -> None:
    job.check()  # a wrong topic would else end in a page of Spark's and Java's traces
    with _session(f"sprocket-{name}", master, conf) as session, _progress(name) as watch:
        summary = job.run(session, watch)
        found: Report = summary.report()
    if report is not None:
        pipeline_report.write(found, report)
    render.json(found.as_json()) if as_json else pipeline_report.show(found)
    if getattr(summary, "is_interrupted", False):
        typer.echo("sprocket: stopped; run the same command again to continue", err=True)
        raise typer.Exit(INTERRUPTED)


@contextlib.contextmanager
def _session(name: str, master: str, conf: list[str] | None) -> Iterator[SparkSession]:
    """A Spark session that stops with the command, unless there was one before."""
    from sprocket.spark.launching.launch import check_pyspark, session

    check_pyspark()
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    from sprocket.spark.pipelines.parts.streams import reason

    is_ours = SparkSession.getActiveSession() is None
    made = session(name, master, **dict(_pair(text) for text in conf or ()))
    try:
        yield made
    except (PySparkException, Py4JError) as error:
        raise SprocketError(reason(str(error))) from error
    finally:
        if is_ours:
            made.stop()


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise UsageError(f"--conf takes NAME=VALUE, not {text!r}")
    return name.strip(), value.strip()


@contextlib.contextmanager
def _progress(name: str) -> Iterator[Watch]:
    """Shows progress on stderr, if that is a terminal: messages, their rate, the lag."""
    import sys

    if not sys.stderr.isatty():
        yield lambda progress: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(name, total=None)

        def watch(progress: Progress) -> None:
            total = None if progress.behind is None else progress.rows + progress.behind
            words = f"{name}: {progress.in_words()}"
            bars.update(task, completed=progress.rows, total=total, description=words)

        yield watch
