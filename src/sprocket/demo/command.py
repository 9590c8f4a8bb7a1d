"""The demo's options, exit codes and final message."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sprocket.base.errors import SprocketError
from sprocket.demo.plan import BROKER_PORT, NAMESERVER_PORT, Plan
from sprocket.demo.screen import Screen
from sprocket.demo.tour import tour
from sprocket.runtime.clock import SystemClock
from sprocket.runtime.entropy import SystemEntropy
from sprocket.runtime.process import INTERRUPTED, run

FAILED = 1
_USUAL = Plan()
_PORTS = "default: {}, or a free one if that is taken"


def command(
    store: Annotated[
        Path, typer.Option(help="Folder of all data; created if it is missing.")
    ] = _USUAL.store,
    messages: Annotated[
        int, typer.Option(min=10, max=10_000_000, help="Number of messages to send.")
    ] = _USUAL.messages,
    spark: Annotated[
        bool, typer.Option("--spark/--no-spark", help="Whether to run the Spark job.")
    ] = True,
    nameserver_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help=f"0 for any; {_PORTS.format(NAMESERVER_PORT)}."),
    ] = None,
    broker_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help=f"0 for any; {_PORTS.format(BROKER_PORT)}."),
    ] = None,
) -> None:
    """Sends orders to a node on this machine, consumes them in a group, reads them with Spark."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    plan = Plan(store, messages, spark, nameserver_port, broker_port)
    sys.exit(demonstrate(plan, Screen(Console())))


def demonstrate(plan: Plan, screen: Screen) -> int:
    """Runs the demo, prints its result, and returns the exit code."""

    async def whole() -> int:
        result = await tour(plan, screen, clock=SystemClock(), entropy=SystemEntropy())
        screen.finished(result, plan)
        return 0

    try:
        code = run(whole())
    except (SprocketError, OSError) as error:
        screen.failed(str(error))
        return FAILED
    if code == INTERRUPTED:
        screen.stopped()
    return code


def main() -> None:
    """Runs the command line and exits."""
    typer.run(command)
