"""`python -m tests.fuzz [TARGET …] [--seconds N]`: atheris on every target in turn.

A finding stops its target; the input is left in the corpus folder as `crash-…` and is given again
by `python -m tests.fuzz TARGET --input FILE`. What was learned stays in the corpus folder for the
next time.
"""

from __future__ import annotations

import argparse
import logging
import subprocess
import sys
import tempfile
from pathlib import Path

CORPUS = Path(tempfile.gettempdir()) / "sprocket-fuzz"


def main() -> int:
    if "--inside" in sys.argv:
        _, name, _, seconds = sys.argv
        fuzz(name, int(seconds))
    from tests.fuzz.targets import TARGETS

    parser = argparse.ArgumentParser(prog="fuzz", description="Hostile bytes, by atheris.")
    parser.add_argument("target", nargs="*", help=f"which: {', '.join(TARGETS)} (default: all)")
    parser.add_argument("--seconds", type=int, default=600, help="for all of them together")
    parser.add_argument("--input", type=Path, help="one input again, for one target")
    asked = parser.parse_args()
    unknown = sorted(set(asked.target) - set(TARGETS))
    if unknown:
        parser.error(f"no target is named {unknown[0]}; there are {', '.join(TARGETS)}")
    names = asked.target or list(TARGETS)
    if asked.input:
        TARGETS[names[0]](asked.input.read_bytes())
        return 0
    return 1 if [name for name in names if not is_sound(name, asked.seconds // len(names))] else 0


def is_sound(name: str, seconds: int) -> bool:
    """Runs a target in a process of its own, since atheris ends the one that it runs in."""
    command = [sys.executable, "-m", "tests.fuzz", name, "--inside", str(seconds)]
    return subprocess.run(command, check=False).returncode == 0


def fuzz(name: str, seconds: int) -> None:
    """Does not return."""
    import atheris

    with atheris.instrument_imports(include=["sprocket"]):
        from tests.fuzz.targets import TARGETS, seeds

    logging.disable()  # damaged stores have much to tell
    folder = CORPUS / name
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds(name)):
        (folder / f"seed-{number}").write_bytes(seed)
    limits = [f"-max_total_time={max(1, seconds)}", "-max_len=8192", "-rss_limit_mb=2048"]
    told = ["-timeout=20", "-print_final_stats=1", "-verbosity=0", f"-artifact_prefix={folder}/"]
    atheris.Setup([name, *limits, *told, str(folder)], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
