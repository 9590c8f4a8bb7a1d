"""The entry point of `sprocket`: Ctrl-C while modules load ends it without a traceback.

This is set before any other module is loaded, also before `signal` and its imports. Only while
Python itself starts does Ctrl-C still print Python's own message.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what `signal` is made of

#: False if a shell has set SIGINT to be ignored, which stays so.
_IS_OURS = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
if _IS_OURS:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def main() -> None:
    """Loads the command line and runs it."""
    _open_missing_streams()
    from sprocket.cli.main import main as run

    if _IS_OURS:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    run()


def _open_missing_streams() -> None:
    """Opens the null device for each standard stream that whoever started us has closed.

    Its number would else be that of the next file or socket, into which everything would go that
    is printed.
    """
    import os
    import sys

    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        try:
            os.fstat(number)
        except OSError:
            found = os.open(os.devnull, os.O_RDWR)
            if found != number:
                os.dup2(found, number)
                os.close(found)
        setattr(sys, name, open(os.devnull, "w" if number else "r"))  # noqa: SIM115 - for good
