"""Packs the package into one file, for clusters on whose machines it is not installed.

Its dependencies (`msgspec`, `numpy`, `pyarrow` and others that pip installs) must be there.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import sprocket

#: The packages in the file: this one, and the one by which Spark finds the source.
_PACKAGES = ("sprocket", "pyspark_rocketmq")
_LEFT_OUT = ("__pycache__",)


def package_zip(path: str | Path) -> Path:
    """Writes the package as an archive for `--py-files` or `spark.submit.pyFiles`.

    Args:
        path: the file to write, `….zip`.

    Returns:
        Its path.

    Raises:
        OSError: it cannot be written.
    """
    source = Path(sprocket.__file__).parent.parent
    target = Path(path)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in _PACKAGES:
            for file in sorted((source / package).rglob("*")):
                if file.is_file() and not set(_LEFT_OUT) & set(file.parts):
                    archive.write(file, file.relative_to(source))
    return target
