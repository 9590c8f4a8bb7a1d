"""The options that name a profile, which has the secrets of a cluster and of a schema registry.

Options travel to the tasks with all their values. Of a profile only the name and the path of its
file do: the driver reads it when a query starts, and each task on its own machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sprocket.base.errors import ConfigError
from sprocket.spark.options import values
from sprocket.spark.options.declare import option

if TYPE_CHECKING:
    from sprocket.remoting.profiles import ProfileConfig


@dataclass(frozen=True)
class ProfileOptions:
    """A profile by its name."""

    profile: str | None = option(
        "profile",
        values.text,
        "Name of a table `[profile.NAME]` with name servers, keys and TLS, and a schema registry, "
        "instead of options with secrets. Every machine reads it from its `configFile`.",
    )
    config_file: str | None = option(
        "configFile",
        values.text,
        "File (TOML) with the profile, under this path on the driver and on every machine with "
        "tasks. Default: the variable `SPROCKET_CONFIG` of each process.",
    )

    def read_profile(self) -> ProfileConfig | None:
        """What the profile says now on this machine; None without one.

        Nothing keeps it in the options: they are sent to other machines.

        Raises:
            ConfigError: it cannot be read or used.
        """
        if self.profile is None:
            return None
        # Most tasks have no profile, and need not load what reads one.
        from sprocket.remoting.profiles import Profile

        try:
            return Profile.named(self.profile, self.config_file).read()
        except ConfigError as error:
            raise ConfigError(f"option profile: {error}") from None
