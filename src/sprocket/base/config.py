"""Settings as data: each one has a type, a default, bounds, a sentence and RocketMQ's own name.

A part declares its settings as a frozen dataclass whose fields are made with `setting`; loading
them from TOML, from a RocketMQ `broker.conf`, from the environment and from the command line, and
the reference page, all work from these declarations.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Setting:
    """What is known of a setting besides its type and default."""

    doc: str
    rocketmq: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] | None = None


def setting(
    default: Any,
    doc: str,
    *,
    rocketmq: str | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] | None = None,
) -> Any:
    """Declares a setting as a dataclass field.

    Args:
        default: its value when nobody sets it; its type comes from the annotation.
        doc: one sentence; it is what `--help` and the reference page show.
        rocketmq: the key that RocketMQ's own configuration files use for it.
        minimum, maximum: bounds, both allowed.
        choices: the only texts allowed.
    """
    about = Setting(doc, rocketmq, minimum, maximum, choices)
    return field(default=default, metadata={"setting": about})
