"""Files with secrets, which nobody else may be able to read."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple

from sprocket.base.errors import ConfigError


class SecretFile(NamedTuple):
    """A file that was read.

    Attributes:
        path: where it is.
        content: its bytes.
        is_private: whether only its owner has any permission. The group may read it if it is root's
            and not this user's: platforms mount secrets so. True where there are no permissions.
    """

    path: Path
    content: bytes
    is_private: bool

    def check(self) -> None:
        """Raises ConfigError if others may read it too."""
        if not self.is_private:
            raise ConfigError(
                f"{self.path} contains secrets, and others may read it: chmod 600 {self.path}"
            )


def read_secret_file(path: Path, bytes_max: int) -> SecretFile:
    """Reads a file that may have secrets; `check` it before they are used.

    Args:
        bytes_max: a longer file is refused.

    Raises:
        ConfigError: it cannot be read, or is too long.
    """
    try:
        with path.open("rb") as file:
            about = os.fstat(file.fileno())
            content = file.read(bytes_max + 1)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:  # a path with a null character
        raise ConfigError(f"cannot read {str(path)!a}: {error}") from None
    if len(content) > bytes_max:
        raise ConfigError(f"{path}: larger than {bytes_max} bytes")
    is_private = os.name != "posix" or _is_private(about.st_mode, about.st_uid, os.geteuid())
    return SecretFile(path, content, is_private)


def _is_private(mode: int, owner: int, user: int) -> bool:
    others = stat.S_IRWXG | stat.S_IRWXO
    if owner == 0 != user:
        others &= ~stat.S_IRGRP
    return not mode & others
