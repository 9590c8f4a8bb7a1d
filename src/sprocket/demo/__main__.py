"""`python -m sprocket.demo` runs the demo. `--help` lists its options."""

from __future__ import annotations

import os
import signal
from types import FrameType

_INTERRUPTED = 130


def main() -> None:
    """Runs the demo. Ctrl-C before anything has started ends it without a traceback."""
    signal.signal(signal.SIGINT, _leave)
    from sprocket.demo import command

    command.main()


def _leave(_number: int, _frame: FrameType | None) -> None:
    os.write(2, b"stopped\n")
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
