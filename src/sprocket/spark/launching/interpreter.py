"""The interpreter that Spark's workers on this machine are started with.

Spark has them import PySpark from a zip file, without compiled code: each process then compiles
some hundred modules before it does anything. Where the same PySpark is installed for this
interpreter, a stand-in takes the zip file from their path.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from sprocket.spark.launching.cached_script import kept, quoted

# Arrow's own allocators give memory back to the system at once and fault it in again for every
# batch: a fifth of what decoding costs.
_SCRIPT = """#!/bin/sh
zip={zip}
paths=":$PYTHONPATH:"
while case $paths in *":$zip:"*) true ;; *) false ;; esac; do
  paths="${{paths%%":$zip:"*}}:${{paths#*":$zip:"}}"
done
paths=${{paths#:}}
[ -z "$PYTHONPATH" ] || export PYTHONPATH="${{paths%:}}"
export ARROW_DEFAULT_MEMORY_POOL="${{ARROW_DEFAULT_MEMORY_POOL:-system}}"
exec {python} "$@"
"""


def for_workers(pyspark: Path, environment: Mapping[str, str] | None = None) -> str:
    """The program to run as workers' Python: a stand-in for this interpreter, or itself.

    Args:
        pyspark: folder of the package.
    """
    if sys.platform == "win32" or not sys.executable:
        return sys.executable
    zipped = pyspark / "python" / "lib" / "pyspark.zip"
    script = _SCRIPT.format(zip=quoted(zipped), python=quoted(sys.executable))
    return str(kept(script, "python3", environment) or sys.executable)
