"""Where the command `sprocket` begins: Ctrl-C while modules are loaded ends it without a word.

That is said before anything else is loaded, `signal` and what it brings along too. Only before any
of this, while Python itself starts, does Ctrl-C still end in words of Python's.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what `signal` is made of

#: Else a shell has it ignored, and so it stays.
_IS_OURS = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
if _IS_OURS:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def main() -> None:
    """Loads the command line and runs it."""
    from sprocket.cli.main import main as run

    if _IS_OURS:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    run()
