"""A PostgreSQL of a test's own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

#: Debian keeps the server's commands outside PATH.
_FOLDERS = [
    os.environ.get("PATH", ""),
    *map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin"))),
]
_COMMAND = shutil.which("pg_ctl", path=os.pathsep.join(_FOLDERS))

#: Why there is none, or None if there is.
MISSING = None if _COMMAND else "PostgreSQL's server is not installed (Debian's `postgresql`)"


@contextmanager
def postgres(port: int) -> Iterator[dict[str, str]]:
    """Runs one with an empty database `shop`; gives libpq's variables for it.

    PostgreSQL refuses to run as root, so root starts it as another user.
    """
    assert _COMMAND, MISSING
    user = "postgres" if sys.platform == "linux" and os.getuid() == 0 else None
    with TemporaryDirectory(prefix="postgres-") as folder:
        if user:
            shutil.chown(folder, user)

        def call(name: str, *arguments: str) -> None:
            path = Path(_COMMAND).resolve().parent / name
            subprocess.run(
                [path, *arguments],
                user=user,
                cwd=folder,
                check=True,
                stdout=subprocess.DEVNULL,
                timeout=120,
            )

        data = f"{folder}/data"
        call("initdb", "--pgdata", data, "--username", "shop", "--auth", "trust", "--no-sync")
        options = f"-p {port} -c listen_addresses=127.0.0.1 -k {folder} -c fsync=off"
        call("pg_ctl", "-D", data, "-l", f"{folder}/log", "-o", options, "-w", "start")
        try:
            call("createdb", "-h", "127.0.0.1", "-p", str(port), "-U", "shop", "shop")
            yield {
                "PGHOST": "127.0.0.1",
                "PGPORT": str(port),
                "PGUSER": "shop",
                "PGDATABASE": "shop",
            }
        finally:
            call("pg_ctl", "-D", data, "-m", "immediate", "stop")
