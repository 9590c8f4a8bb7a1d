"""`sprocket store`: inspects and repairs a broker's folder, without a broker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sprocket.base.errors import UsageError
from sprocket.cli import render
from sprocket.cli.asking import run
from sprocket.cli.options import ConfigFile, Json, Set, Yes, command
from sprocket.message.offsets import LONG_MAX

if TYPE_CHECKING:
    from sprocket.message.record import Record
    from sprocket.store.inspection.inspected import Finding, InspectedStore
    from sprocket.store.inspection.repair import Repair, RepairStep
    from sprocket.store.log.damage import Damage

app = typer.Typer(help="Store of a broker, Sprocket's or Java's: verify, dump, repair.")

FOUND_SOMETHING = 1

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the store.")]


@command(
    app,
    "verify",
    "sprocket store verify sprocket-data",
    "sprocket store verify /data/store --config broker.conf --json",
)
def verify(
    folder: Folder, config: ConfigFile = None, given: Set = None, as_json: Json = False
) -> None:
    """Checks a whole store and reports all faults, with file and position. Changes nothing.

    The exit code is 1 if there are faults. Works beside a running broker.
    """
    from sprocket.store.inspection.verify import Verification

    store = _inspected(folder, config, given)
    count = 0
    look = Verification(store)
    with render.progress("bytes", look.total_bytes) as advance:
        for finding in look.findings(advance):
            count += finding.is_fault
            _show(finding, as_json=as_json)
    facts = {
        "records": look.records,
        "log_start": look.log_start,
        "log_end": look.log_end,
        "queue_entries": look.entries,
        "index_entries": look.index_entries,
        "faults": count,
    }
    if as_json:
        render.json(facts)
    else:
        typer.echo(
            f"{look.records} records in log offsets {look.log_start} to {look.log_end}, "
            f"{look.entries} queue entries, {look.index_entries} key index entries: "
            + (f"{count} faults" if count else "no faults")
        )
    if count:
        raise typer.Exit(FOUND_SOMETHING)


def _inspected(folder: Path, config: Path | None, given: list[str] | None) -> InspectedStore:
    from sprocket.cli import loading
    from sprocket.runtime.disk import SystemDisk
    from sprocket.store.config import StoreConfig
    from sprocket.store.inspection.inspected import InspectedStore

    settings = loading.settings(_kinds(), file=config, given=given).of(StoreConfig)
    return InspectedStore(SystemDisk(), str(folder), settings)


def _kinds() -> list[type]:
    """The configuration classes whose settings may be in a broker's file."""
    from sprocket.broker.config import BrokerConfig
    from sprocket.nameserver.config import NameServerConfig
    from sprocket.store.config import StoreConfig

    return [BrokerConfig, StoreConfig, NameServerConfig]


def _show(finding: Finding, *, as_json: bool) -> None:
    if as_json:
        render.json(finding._asdict())
    else:
        typer.echo(f"{'FAULT' if finding.is_fault else 'note '} {finding.what}: {finding}")


@command(
    app,
    "dump",
    "sprocket store dump sprocket-data --topic orders --queue 0 --from 100 --count 5",
    "sprocket store dump sprocket-data --from 1073741824 --body hex",
    "sprocket store dump sprocket-data --json",
)
def dump(
    folder: Folder,
    topic: Annotated[
        str | None, typer.Option("--topic", "-t", metavar="TOPIC", help="Only this topic.")
    ] = None,
    queue: Annotated[
        int | None,
        typer.Option("--queue", "-q", min=0, help="Only this queue of the topic, in its order."),
    ] = None,
    begin: Annotated[
        int,
        typer.Option("--from", min=0, help="First log offset; with --queue, first queue offset."),
    ] = 0,
    end: Annotated[int, typer.Option("--to", min=0, help="Stop before this offset.")] = LONG_MAX,
    count: Annotated[
        int | None, typer.Option("--count", "-c", min=1, help="At most this many records.")
    ] = None,
    body: Annotated[
        str, typer.Option("--body", metavar="text|hex|none", help="How to show bodies.")
    ] = "text",
    config: ConfigFile = None,
    given: Set = None,
    as_json: Json = False,
) -> None:
    """Shows the records of a store, and its damage. Changes nothing.

    Works beside a running broker, for everything that is known to be on the disk.
    """
    from itertools import islice

    from sprocket.store.inspection.dump import DumpSelection
    from sprocket.store.inspection.dump import dump as records
    from sprocket.store.log.damage import Damage

    if body not in ("text", "hex", "none"):
        raise UsageError(f"--body takes text, hex or none, not {body}")
    store = _inspected(folder, config, given)
    for each in islice(records(store, DumpSelection(topic, queue, begin, end)), count):
        if isinstance(each, Damage):
            _show_damage(each, as_json=as_json)
        elif as_json:
            render.json(_facts(each, body))
        else:
            _show_record(each, body)


def _show_damage(damage: Damage, *, as_json: bool) -> None:
    if as_json:
        render.json({"damage": damage._asdict()})
    else:
        typer.echo(f"DAMAGE {damage}")


def _facts(record: Record, body: str) -> dict[str, Any]:
    from sprocket.message.hosts import unpack
    from sprocket.message.properties import decode_bytes

    facts: dict[str, Any] = {
        "log_offset": record.log_offset,
        "record_bytes": record.size,
        "topic": record.topic,
        "queue": record.queue_number,
        "queue_offset": record.queue_offset,
        "born_ms": record.born_ms,
        "born_host": unpack(record.born_host),
        "stored_ms": record.stored_ms,
        "store_host": unpack(record.store_host),
        "flag": record.flag,
        "sys_flag": record.sys_flag,
        "reconsume_times": record.reconsume_times,
        "prepared_offset": record.prepared_offset,
        "properties": decode_bytes(record.properties),
        "body_bytes": len(record.body),
    }
    if body != "none":
        facts["body"] = _body(record, body)
    return facts


def _body(record: Record, manner: str) -> str:
    """A body as text or hexadecimal. For text, compressed bodies are decompressed."""
    from sprocket.base.errors import CorruptRecord
    from sprocket.message.compression import COMPRESSED, open_body

    raw = bytes(record.body)
    if manner == "hex":
        return raw.hex()
    if record.sys_flag & COMPRESSED:
        try:
            raw = open_body(raw, record.sys_flag)
        except CorruptRecord:
            return raw.hex()
    return raw.decode("utf-8", "backslashreplace")


def _show_record(record: Record, body: str) -> None:
    from sprocket.message.properties import decode_bytes

    place = f"{record.log_offset} {record.topic}:{record.queue_number}:{record.queue_offset}"
    pairs = " ".join(f"{k}={v}" for k, v in decode_bytes(record.properties).items())
    typer.echo(f"{place} {record.size} bytes, stored {record.stored_ms} {pairs}".rstrip())
    if body != "none":
        typer.echo(f"    {_body(record, body)}")


@command(
    app,
    "repair",
    "sprocket store repair sprocket-data --skip-damaged",
    "sprocket store repair sprocket-data --skip-damaged --yes",
    "sprocket store repair sprocket-data --cut-at 1073742336 --yes",
    "sprocket store repair sprocket-data --rebuild-views --yes",
)
def repair(
    folder: Folder,
    cut_at: Annotated[
        int | None,
        typer.Option("--cut-at", min=0, help="End the log at this log offset."),
    ] = None,
    skip: Annotated[
        bool, typer.Option("--skip-damaged", help="Skip damaged records and keep all others.")
    ] = False,
    rebuild: Annotated[
        bool,
        typer.Option("--rebuild-views", help="Have the next start rebuild queues and key index."),
    ] = False,
    yes: Yes = False,
    config: ConfigFile = None,
    given: Set = None,
    as_json: Json = False,
) -> None:
    """Repairs a store that no broker has open. Without --yes it only prints what it would do.

    It moves removed files to the store's folder `removed`. Afterwards start the broker, or
    verify again. If there is nothing to repair, it says so, and its exit code is 1.
    """
    import time

    from sprocket.store.inspection.repair import Repair

    if (cut_at is not None) == skip and not (rebuild and not skip):
        raise UsageError("give --cut-at or --skip-damaged, or only --rebuild-views")
    store = _inspected(folder, config, given)
    lock = store.disk.lock(store.root)
    try:
        mending = Repair(store, int(time.time() * 1000))
        steps = _steps(mending, cut_at=cut_at, skip=skip, rebuild=rebuild)
        _carry_out(mending, steps, yes=yes, as_json=as_json)
    finally:
        lock.release()


def _steps(mending: Repair, *, cut_at: int | None, skip: bool, rebuild: bool) -> list[RepairStep]:
    steps = []
    if cut_at is not None:
        steps += mending.cut_at(cut_at)
    if skip:
        steps += mending.skip_damaged()
    if rebuild:
        steps += mending.rebuild_views()
    return steps


def _carry_out(mending: Repair, steps: list[RepairStep], *, yes: bool, as_json: bool) -> None:
    if as_json:
        render.json({"done": yes, "kept": mending.kept, "steps": [step.text for step in steps]})
    elif not steps:
        typer.echo("there is nothing to do")
    else:
        for step in steps:
            typer.echo(step.text if yes else f"would {step.text}")
        typer.echo(
            f"removed files are in {mending.kept}" if yes else "run again with --yes to do it"
        )
    if yes:

        async def carry_out() -> None:
            for step in steps:
                await step.do()

        run(carry_out())
    if not steps:
        raise typer.Exit(FOUND_SOMETHING)
