"""Makes a Spark session that reads RocketMQ topics, with one call.

It finds Java, gives Spark's Python workers this interpreter, keeps the console quiet, and registers
`.format("rocketmq")`. It is an ordinary session: every setting can be overridden, and any other
session with this package installed reads topics as well.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sprocket.base.errors import UsageError
from sprocket.spark.launching.interpreter import for_workers
from sprocket.spark.launching.java import find_java, home_for_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The oldest PySpark whose Python data sources can do all that is needed here.
PYSPARK_OLDEST = (4, 0)

_LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:,\d+)?\])?")
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_QUIET = Path(__file__).with_name("log4j2.properties")

_CHECKPOINT_FILES = "spark.sql.streaming.checkpointFileManagerClass"
#: The class that writes checkpoints through `FileSystem`, in Spark 4.1 and later, and in 4.0.
_PLAIN_FILES = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
    "org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager",
)


def session(
    app_name: str = "sprocket", master: str = "local[*]", **conf: str | int | bool
) -> SparkSession:
    """A session, on this machine by default, on a cluster with `master="spark://…"` and the like.

    Args:
        app_name: the name that Spark shows.
        master: Spark's master URL.
        conf: further Spark settings, as keywords with `_` for `.`: `spark_driver_memory="4g"`; or
            with their own names: `**{"spark.driver.memory": "4g"}`.

    Raises:
        UsageError: PySpark or Java is missing or too old; the text names what to install.
    """
    check_pyspark()
    from pyspark.sql import SparkSession

    _keep_options_out_of_logs()
    active = SparkSession.getActiveSession()
    if active is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
        prepare_environment(master)
    builder: Any = SparkSession.builder
    builder = builder.appName(app_name).master(master)
    for name, value in settings(master, conf).items():
        builder = builder.config(name, value)
    made: SparkSession = builder.getOrCreate()
    if importlib.util.find_spec("pyspark_rocketmq") is None:
        # Spark finds the source by that package's name; without it the source is registered here.
        from sprocket.spark.source import RocketMQSource

        made.dataSource.register(RocketMQSource)
    if local_cores(master) is not None:
        _write_checkpoints_plainly(made)
    return made


def _keep_options_out_of_logs() -> None:
    """Py4J writes each call to Java at the level DEBUG, and so `.option("secretKey", …)`.

    It stays silent unless a program sets the level of its logger, and not only of all.
    """
    py4j = logging.getLogger("py4j")
    if py4j.level == logging.NOTSET:
        py4j.setLevel(logging.INFO)


def _write_checkpoints_plainly(made: SparkSession) -> None:
    """Sets the class that writes checkpoints to one that renames files within Java.

    Spark's own choice, `FileContext`, starts eight programs (`readlink`) for each file, and each
    micro-batch writes two files. On a local disk both classes write a new file and rename it, and
    neither replaces an existing file.
    """
    java: Any = getattr(made, "_jvm", None)
    if java is None or made.conf.get(_CHECKPOINT_FILES, None) is not None:
        return
    for name in _PLAIN_FILES:
        if java.java.lang.ClassLoader.getSystemResource(name.replace(".", "/") + ".class"):
            made.conf.set(_CHECKPOINT_FILES, name)
            return


def check_pyspark() -> None:
    """Raises UsageError if PySpark or a package of the source is missing, or PySpark is too old."""
    wanted = ".".join(map(str, PYSPARK_OLDEST))
    for name in ("pyspark", "pyarrow", "numpy"):
        if importlib.util.find_spec(name) is None:
            raise UsageError(
                f"{name} is missing: `pip install 'sprocketmq[spark]'` brings PySpark {wanted} or "
                "later and what it needs"
            )
    import pyspark

    version = tuple(int(part) for part in re.findall(r"\d+", pyspark.__version__)[:2])
    if version < PYSPARK_OLDEST:
        raise UsageError(
            f"PySpark {pyspark.__version__} is too old: {wanted} or later is needed "
            "(`pip install 'sprocketmq[spark]'`)"
        )


def prepare_environment(master: str) -> None:
    """Sets the environment variables of this process that Spark's launcher reads.

    Raises:
        UsageError: there is no Java, or no bash, which the launcher needs.
    """
    if sys.platform != "win32" and shutil.which("bash") is None:
        raise UsageError("Spark's launcher is a bash script, and there is no bash on the PATH")
    os.environ["JAVA_HOME"] = str(home_for_spark(find_java()))
    python = sys.executable
    if local_cores(master) is not None:
        # Workers of a cluster have interpreters of their own; local ones must use this one.
        import pyspark

        python = os.environ["PYSPARK_PYTHON"] = for_workers(Path(pyspark.__file__).parent)
    # Spark runs a data source's planning with this one.
    os.environ["PYSPARK_DRIVER_PYTHON"] = python


def settings(master: str, conf: Mapping[str, str | int | bool]) -> dict[str, str]:
    """Spark's settings: the user's override ours; Java's options are joined."""
    ours, theirs = _ours(master), dict(_theirs(conf))
    if _JAVA_OPTIONS in theirs:
        theirs[_JAVA_OPTIONS] = f"{ours[_JAVA_OPTIONS]} {theirs[_JAVA_OPTIONS]}"
    return {**ours, **theirs}


def _ours(master: str) -> dict[str, str]:
    ours = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.python.filterPushdown.enabled": "true",
        _JAVA_OPTIONS: f'"-Dlog4j2.configurationFile={_QUIET.as_uri()}"',
    }
    cores = local_cores(master)
    if cores is not None:
        # On one machine no host name is resolved, and a shuffle needs a task a core, not 200.
        ours["spark.driver.host"] = ours["spark.driver.bindAddress"] = "127.0.0.1"
        ours["spark.sql.shuffle.partitions"] = str(cores)
    return ours


def _theirs(conf: Mapping[str, str | int | bool]) -> Iterator[tuple[str, str]]:
    for name, value in conf.items():
        dotted = name if "." in name else name.replace("_", ".")
        if not dotted.startswith("spark."):
            raise UsageError(f"{name!r} is no setting of Spark's: they begin with `spark.`")
        yield dotted, str(value).lower() if isinstance(value, bool) else str(value)


def local_cores(master: str) -> int | None:
    """The number of cores that a local master uses; None if the master is not local."""
    found = _LOCAL.fullmatch(master)
    if found is None:
        return None
    if found[1] is None:
        return 1
    return os.cpu_count() or 1 if found[1] == "*" else int(found[1])
