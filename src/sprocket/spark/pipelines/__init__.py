"""Ready pipelines over topics: each a value that says what to do, with `run(session)`.

    from sprocket.spark import session
    from sprocket.spark.pipelines import Archive

    archive = Archive(nameservers="127.0.0.1:9876", topics=("orders",), folder="orders-archive")
    done = archive.run(session())

Each can be stopped and started again. Its module and the guide describe what it promises.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sprocket.spark.pipelines.archive import Archive as Archive
    from sprocket.spark.pipelines.deadletters import DeadLetters as DeadLetters
    from sprocket.spark.pipelines.lag import Lag as Lag
    from sprocket.spark.pipelines.mirror import Mirror as Mirror
    from sprocket.spark.pipelines.replay import Replay as Replay
    from sprocket.spark.pipelines.trace import Trace as Trace
    from sprocket.spark.pipelines.volume import Volume as Volume

#: The module of each pipeline.
_WHERE = {
    "Archive": "archive",
    "Replay": "replay",
    "DeadLetters": "deadletters",
    "Lag": "lag",
    "Volume": "volume",
    "Trace": "trace",
    "Mirror": "mirror",
}

__all__ = ["Archive", "DeadLetters", "Lag", "Mirror", "Replay", "Trace", "Volume"]


def __getattr__(name: str) -> object:
    # Executors import this package for tasks, so a pipeline's module is loaded when it is used.
    if name in _WHERE:
        return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
