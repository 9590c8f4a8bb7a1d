"""Where the command `sprocket` begins: Ctrl-C while modules are loaded ends it without a word."""

from __future__ import annotations

import signal


def main() -> None:
    """Loads the command line and runs it."""
    is_ours = (
        signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )  # else a shell ignores it
    if is_ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from sprocket.cli.main import main as run

    if is_ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()
