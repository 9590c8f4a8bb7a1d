"""Profiles: in a file, by a name, which cluster is meant and as whom it is asked, and likewise the
schema registry that belongs to it.

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
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Self

from sprocket.base import setting_forms as forms
from sprocket.base.config import Conflict, setting
from sprocket.base.config_files import ConfigFile, load_variants
from sprocket.base.decoding import decode
from sprocket.base.errors import ConfigError
from sprocket.base.secret_files import read_secret_file
from sprocket.base.suggestions import nearest
from sprocket.remoting.access_config import AccessConfig

if TYPE_CHECKING:
    from sprocket.schemas.choice import Registry

#: The variable with the file of settings of commands.
FILE_VARIABLE = "SPROCKET_CONFIG"
_FILE_BYTES_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class ProfileConfig(AccessConfig):
    """A cluster and a schema registry, and as whom they are asked."""

    nameservers: tuple[str, ...] = setting(
        (), "Name servers, `host:port`.", rocketmq="namesrvAddr", form=forms.addresses
    )

    registry: str | None = setting(
        None, "Where schemas are whose numbers bodies begin with: a URL, or a folder."
    )
    registry_user: str | None = setting(None, "The user of the schema registry.")
    registry_password: str | None = setting(
        None, "The password of the registry's user.", is_secret=True
    )
    registry_token: str | None = setting(
        None, "A bearer token for the registry, instead of a user.", is_secret=True
    )
    registry_authorities: str | None = setting(
        None,
        "File (PEM) of the authorities that the registry's certificate is checked against; without "
        "it those of the system.",
    )

    @property
    def has_secrets(self) -> bool:
        """Whether others must not read it."""
        ours = (self.secret_key, self.security_token, self.tls_key_password)
        return any((*ours, self.registry_password, self.registry_token))

    def conflicts(self) -> Iterator[Conflict]:
        """What is wrong with the settings together."""
        yield from AccessConfig.conflicts(self)
        if self.registry is None:
            for name in ("user", "password", "token", "authorities"):
                if getattr(self, f"registry_{name}") is not None:
                    yield Conflict((f"registry_{name}", "registry"), "is given without registry")
        if self.registry_user is not None and self.registry_token is not None:
            yield Conflict(
                ("registry_user", "registry_token"), "and registry_token exclude each other"
            )
        if self.registry_password is not None and self.registry_user is None:
            yield Conflict(("registry_password", "registry_user"), "is given without registry_user")

    def schema_registry(self) -> Registry:
        """The schema registry, and as whom it is asked.

        Raises:
            ConfigError: the profile has none.
        """
        if self.registry is None:
            raise ConfigError("the profile has no registry")
        from sprocket.schemas.http_registry import registry_at

        return registry_at(
            self.registry,
            user=self.registry_user,
            password=self.registry_password,
            token=self.registry_token,
            authorities=self.registry_authorities,
        )


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
