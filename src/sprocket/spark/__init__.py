"""The Spark data source `rocketmq` for topics, and a Spark session in which it is registered."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sprocket.spark.launching.launch import session as session
    from sprocket.spark.launching.package_zip import package_zip as package_zip
    from sprocket.spark.query_metrics import listen as listen
    from sprocket.spark.query_progress import progress as progress

__all__ = ["listen", "package_zip", "progress", "session"]

#: Where the names of this package come from.
_MODULES = {
    "listen": "query_metrics",
    "package_zip": "launching.package_zip",
    "progress": "query_progress",
    "session": "launching.launch",
}


def __getattr__(name: str) -> object:
    # Executors import this package for every task, so nothing is loaded before it is used.
    if name in _MODULES:
        return getattr(import_module(f"sprocket.spark.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
