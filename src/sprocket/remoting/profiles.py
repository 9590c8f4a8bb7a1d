"""Profiles: in a file, by a name, which cluster is meant and as whom it is asked.

    [profile.production]
    nameservers = "10.0.0.1:9876;10.0.0.2:9876"
    access_key = "reports"
    secret_key = "…"
    tls = true

A profile is passed on by name. Whoever connects reads the file, so that its secrets are in no
command, and in no plan and no task of Spark's.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Self

from sprocket.base import setting_forms as forms
from sprocket.base.config import setting
from sprocket.base.config_files import ConfigFile, load_variants
from sprocket.base.decoding import decode
from sprocket.base.errors import ConfigError
from sprocket.base.secret_files import read_secret_file
from sprocket.base.suggestions import nearest
from sprocket.remoting.access_config import AccessConfig

#: The variable with the file of settings of commands.
FILE_VARIABLE = "SPROCKET_CONFIG"
_FILE_BYTES_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class ProfileConfig(AccessConfig):
    """A cluster, and as whom it is asked."""

    nameservers: tuple[str, ...] = setting(
        (), "Name servers, `host:port`.", rocketmq="namesrvAddr", form=forms.addresses
    )

    @property
    def has_secrets(self) -> bool:
        """Whether others must not read it."""
        return any((self.secret_key, self.security_token, self.tls_key_password))


@dataclass(frozen=True, slots=True)
class Profile:
    """Where a profile is.

    Attributes:
        name: as in `[profile.NAME]`.
        file: path of the file.
    """

    name: str
    file: str

    @classmethod
    def named(cls, name: str, file: str | None = None) -> Self:
        """The profile of this name in a file, or in that of the variable SPROCKET_CONFIG.

        Raises:
            ConfigError: no file is given.
        """
        found = file or os.environ.get(FILE_VARIABLE)
        if not found:
            raise ConfigError(
                f"profile {name!r} is in the file of {FILE_VARIABLE}, which is not set"
            )
        return cls(name, found)

    def read(self) -> ProfileConfig:
        """What the file says now.

        Raises:
            ConfigError: the file cannot be read, is not valid, or has no such profile; or it has
                secrets that others may read.
        """
        file = read_secret_file(Path(self.file), _FILE_BYTES_MAX)
        profiles = _profiles_in(self.file, file.content)
        found = profiles.get(self.name)
        if found is None:
            hint = nearest(self.name, profiles)
            raise ConfigError(f"{self.file} has no table [profile.{self.name}]{hint}")
        if found.has_secrets:
            file.check()
        return found


@lru_cache(maxsize=4)
def _profiles_in(name: str, content: bytes) -> dict[str, ProfileConfig]:
    # Tasks of Spark read it one after the other in the same process.
    return load_variants(ProfileConfig, ConfigFile(name, decode(content)))
