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
    from sprocket.cli.main import main as run

    if _IS_OURS:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    run()
