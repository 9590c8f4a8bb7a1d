"""`python -m tests.fuzz [TARGET …] [--seconds N | --each N]`: hostile bytes on every target.

Where atheris is installed, it looks for inputs that lead to new code, and keeps them in the corpus
folder for the next time; elsewhere, or with `--plain`, the seeds are changed by chance. A finding
stops its target: the smallest form of the input is printed and kept as `found-…` in that folder,
and `python -m tests.fuzz TARGET --input FILE` gives it again.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import logging
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

CORPUS = Path(tempfile.gettempdir()) / "sprocket-fuzz"
#: The processor time that one input may take, and the time by the clock, s. On a busy machine an
#: input may wait long for its turn, which says nothing of it.
_SLOW_SECONDS, _STUCK_SECONDS = 20, 300
_BYTES_MAX = 8_192
#: How the process of one target is started: with atheris, and without.
_INSIDE = ("--inside", "--inside-plain")


def main() -> int:
    if len(sys.argv) == 4 and sys.argv[2] in _INSIDE:
        _, name, way, seconds = sys.argv
        (by_atheris if way == _INSIDE[0] else by_chance)(name, int(seconds))
    from tests.fuzz.targets import TARGETS

    parser = argparse.ArgumentParser(prog="fuzz", description="Hostile bytes.")
    parser.add_argument("target", nargs="*", help=f"which: {', '.join(TARGETS)} (default: all)")
    parser.add_argument("--seconds", type=int, default=600, help="for all of them together")
    parser.add_argument("--each", type=int, help="for each of them instead")
    parser.add_argument("--plain", action="store_true", help="without atheris")
    parser.add_argument("--input", type=Path, help="one input again, for one target")
    asked = parser.parse_args()
    unknown = sorted(set(asked.target) - set(TARGETS))
    if unknown:
        parser.error(f"no target is named {unknown[0]}; there are {', '.join(TARGETS)}")
    names = asked.target or list(TARGETS)
    if asked.input:
        TARGETS[names[0]](asked.input.read_bytes())
        return 0
    is_plain = asked.plain or importlib.util.find_spec("atheris") is None
    each = asked.each or max(1, asked.seconds // len(names))
    return run(names, each, is_plain=is_plain)


def run(names: list[str], seconds: int, *, is_plain: bool) -> int:
    """Runs the targets, each in a process of its own, with a bar and a line for each."""
    console, found = Console(), 0
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        task = bars.add_task("", total=len(names) * seconds)
        for number, name in enumerate(names):
            began = time.monotonic()
            with start(name, seconds, is_plain=is_plain) as process:
                while process.poll() is None:
                    time.sleep(0.2)
                    spent = min(time.monotonic() - began, seconds)
                    bars.update(task, description=name, completed=number * seconds + spent)
            taken = time.monotonic() - began
            console.print(f"{name}: {_inputs(name)} inputs in {taken:.0f} s", highlight=False)
            if process.returncode:
                found += report(console, name)
    console.print(f"{len(names)} targets, {found} with a finding", highlight=False)
    return 1 if found else 0


def start(name: str, seconds: int, *, is_plain: bool) -> subprocess.Popen[bytes]:
    """The process of one target. What it prints is in `log` of its corpus folder."""
    folder = CORPUS / name
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("crash-*"):
        old.unlink()
    way = _INSIDE[is_plain]
    command = [sys.executable, "-m", "tests.fuzz", name, way, str(seconds)]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)


def _inputs(name: str) -> str:
    """How many inputs a target got, from what it printed."""
    text = (CORPUS / name / "log").read_text(errors="replace")
    numbers = re.findall(
        r"stat::number_of_executed_units: (\d+)|^inputs: (\d+)$|^#(\d+)\s", text, re.M
    )
    return next(iter("".join(each) for each in reversed(numbers)), "?")


def report(console: Console, name: str) -> bool:
    """Prints a finding with the smallest input that leads to it. Returns whether it is one."""
    folder = CORPUS / name
    crashes = sorted(
        [*folder.glob("crash-*"), *folder.glob("timeout-*"), *folder.glob("oom-*")],
        key=lambda path: path.stat().st_mtime,
    )
    if not crashes:
        console.print((folder / "log").read_text(errors="replace")[-3_000:], markup=False)
        return True
    data = crashes[-1].read_bytes()
    began = time.process_time()
    small, trace = shrunk(name, data)
    if not trace and time.process_time() - began < _SLOW_SECONDS:
        console.print(f"{name}: an input took long because the machine was busy", markup=False)
        return False
    kept = folder / f"found-{int(time.time())}"
    kept.write_bytes(small)
    console.print(f"{name} fails with {len(small)} bytes, kept in {kept}:", style="red")
    console.print(f"{small!r}\n{trace or 'it takes too long'}", markup=False, highlight=False)
    return True


def shrunk(name: str, data: bytes) -> tuple[bytes, str]:
    """The smallest input that fails as this one does, and the trace of that; empty if it does not
    fail, but perhaps takes long."""
    from tests.fuzz.mutator import smallest
    from tests.fuzz.targets import TARGETS

    logging.disable()

    def failure(tried: bytes) -> tuple[str, str]:
        try:
            TARGETS[name](tried)
        except BaseException as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            return f"{type(error).__name__} {last.filename}:{last.lineno}", traceback.format_exc()
        return "", ""

    kind, trace = failure(data)
    if not kind:
        return data, ""
    small = smallest(data, lambda tried: failure(tried)[0] == kind)
    return small, failure(small)[1] or trace


def by_chance(name: str, seconds: int) -> None:
    """Changes the seeds by chance. Does not return."""
    from tests.fuzz.mutator import mutated
    from tests.fuzz.targets import TARGETS, seeds

    logging.disable()
    target, good, count = TARGETS[name], seeds(name), 0
    chance = random.Random(os.environ.get("SPROCKET_FUZZ_SEED", f"{time.time_ns()}"))
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        began = time.process_time()
        data = mutated(good, chance, bytes_max=_BYTES_MAX)
        try:
            target(data)
            assert time.process_time() - began < _SLOW_SECONDS, "it takes too long"
        except BaseException:
            (CORPUS / name / f"crash-{count}").write_bytes(data)
            traceback.print_exc()
            sys.exit(1)
        count += 1
    print(f"inputs: {count}")  # noqa: T201 - for the process that started this one
    sys.exit(0)


def by_atheris(name: str, seconds: int) -> None:
    """Does not return."""
    import atheris

    # Suggestions compare a name with a thousand others, which takes long when it is followed.
    with atheris.instrument_imports(include=["sprocket"], exclude=["sprocket.base.suggestions"]):
        from tests.fuzz.targets import TARGETS, seeds

    logging.disable()  # damaged stores have much to tell
    folder = CORPUS / name / "corpus"
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds(name)):
        (folder / f"seed-{number}").write_bytes(seed)
    limits = [f"-max_total_time={max(1, seconds)}", f"-max_len={_BYTES_MAX}", "-rss_limit_mb=2048"]
    told = [
        f"-timeout={_STUCK_SECONDS}",
        "-print_final_stats=1",
        f"-artifact_prefix={folder.parent}/",
    ]
    atheris.Setup([name, *limits, *told, str(folder)], TARGETS[name])
    with contextlib.suppress(KeyboardInterrupt):
        atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
