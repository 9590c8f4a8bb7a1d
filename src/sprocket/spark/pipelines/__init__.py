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
    from sprocket.spark.pipelines.apply import Apply
    from sprocket.spark.pipelines.archive import Archive
    from sprocket.spark.pipelines.deadletters import DeadLetters
    from sprocket.spark.pipelines.lag import Lag
    from sprocket.spark.pipelines.mirror import Mirror
    from sprocket.spark.pipelines.replay import Replay
    from sprocket.spark.pipelines.trace import Trace
    from sprocket.spark.pipelines.volume import Volume

#: Each is in the module of its name in lower case.
__all__ = ["Apply", "Archive", "DeadLetters", "Lag", "Mirror", "Replay", "Trace", "Volume"]


def __getattr__(name: str) -> object:
    # Executors import this package for tasks: they get only what they ask for.
    if name in __all__:
        return getattr(importlib.import_module(f"{__name__}.{name.lower()}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
