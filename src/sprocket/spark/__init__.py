"""The Spark data source `rocketmq` for topics, and a Spark session in which it is registered."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sprocket.spark.launching.launch import session as session
    from sprocket.spark.launching.package_zip import package_zip as package_zip

__all__ = ["package_zip", "session"]


def __getattr__(name: str) -> object:
    # Executors import this package for every task, so nothing is loaded before it is used.
    if name == "session":
        from sprocket.spark.launching.launch import session

        return session
    if name == "package_zip":
        from sprocket.spark.launching.package_zip import package_zip

        return package_zip
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
