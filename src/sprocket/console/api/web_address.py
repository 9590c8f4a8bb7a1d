"""Where a web server listens, and who reaches it there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sprocket.base.errors import ConfigError
from sprocket.console.api.callers import KnownCallers, is_of_this_machine


@dataclass(frozen=True, slots=True)
class WebAddress:
    """Where a web server listens.

    Attributes:
        certificate, key: files in PEM, for TLS; None for none.

    Raises:
        ConfigError: TLS is half set.
    """

    host: str = "127.0.0.1"
    port: int = 0
    certificate: Path | None = None
    key: Path | None = None

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise ConfigError("--certificate and --key go together")

    @property
    def is_of_this_machine(self) -> bool:
        """Whether it is reached from this machine only."""
        return is_of_this_machine(self.host)

    @property
    def is_secure(self) -> bool:
        """Whether it speaks TLS."""
        return self.certificate is not None

    def check(self, callers: KnownCallers) -> None:
        """Checks that strangers cannot do what only people at this machine may.

        Raises:
            ConfigError: it is reached from elsewhere, and everybody may ask.
        """
        if callers.is_open and not self.is_of_this_machine:
            raise ConfigError(
                f"at {self.host} everybody who reaches this machine could ask: name who may with "
                "--callers FILE, or listen at 127.0.0.1"
            )
