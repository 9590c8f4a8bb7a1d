"""Settings as data: each has a type, a default, bounds, a description and RocketMQ's own name.

A part declares its settings as a frozen dataclass whose fields are made with `setting`. The loaders
of TOML, of RocketMQ's `broker.conf`, of the environment and of the command line use these
declarations, and so does the reference page.
"""

from __future__ import annotations

import logging
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import Any, NamedTuple

from sprocket.base.errors import ConfigError
from sprocket.base.suggestions import nearest, shown

logger = logging.getLogger(__name__)

#: The form of a text: why a value is not allowed, or None if it is.
Form = Callable[[Any], str | None]
#: The largest whole number of RocketMQ's files, and of ours.
_WHOLE_MAX = 2**63 - 1
#: What is shown instead of a secret. No secret can be this: whoever copies a listing into a file,
#: or sends it back to a broker, must not replace the secret by it.
SECRET_MASK = "(secret)"


@dataclass(frozen=True, slots=True)
class Setting:
    """What a declaration contains besides the type and the default."""

    doc: str
    rocketmq: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] | None = None
    is_secret: bool = False
    form: Form | None = None
    is_clamped: bool = False


class Conflict(NamedTuple):
    """Settings that are allowed each by itself and not together.

    Attributes:
        names: the settings, the one that the message is about first.
        text: what is wrong; it stands behind the name of the first.
    """

    names: tuple[str, ...]
    text: str


def setting(
    default: Any,
    doc: str,
    *,
    rocketmq: str | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] | None = None,
    is_secret: bool = False,
    form: Form | None = None,
    is_clamped: bool = False,
) -> Any:
    """Declares a setting as a dataclass field.

    Args:
        default: its value when nobody sets it; its type comes from the annotation.
        doc: one sentence, which `--help` and the reference page show.
        rocketmq: the key that RocketMQ's own configuration files use for it; several spellings
            are separated by blanks, the preferred one first.
        minimum, maximum: bounds; both are allowed values.
        choices: the only allowed texts; letter case does not matter in files.
        is_secret: whether the value is masked wherever a configuration is shown or logged.
        form: what a value must look like besides; see `sprocket.base.setting_forms`.
        is_clamped: whether a value out of bounds in a file of RocketMQ's becomes the nearest
            bound, as it does there.
    """
    about = Setting(doc, rocketmq, minimum, maximum, choices, is_secret, form, is_clamped)
    return field(default=default, repr=not is_secret, metadata={"setting": about})


@dataclass(frozen=True, slots=True)
class Declared:
    """One setting of a part, with everything that loading and the reference page need.

    Attributes:
        part: the part's name, which is also the name of its TOML table.
        name: the field's name.
        type: `int`, `float`, `bool`, `str` or `tuple` (of texts).
        optional: whether None is allowed.
        default: its value when nobody sets it.
        about: the rest of the declaration.
    """

    part: str
    name: str
    type: type
    optional: bool
    default: Any
    about: Setting

    @property
    def key(self) -> str:
        """`part.name`, its name in messages and on the command line."""
        return f"{self.part}.{self.name}"

    @property
    def environment(self) -> str:
        """The environment variable that sets it."""
        return f"SPROCKET_{self.part}_{self.name}".upper()

    @property
    def rocketmq_names(self) -> list[str]:
        """Its spellings in RocketMQ's own files, the preferred one first."""
        return (self.about.rocketmq or "").split()

    @property
    def is_size(self) -> bool:
        """Whether it is a whole number of bytes, so that texts like `64MiB` are allowed."""
        return self.type is int and "bytes" in self.name.split("_")

    def complaint(self, value: Any) -> str | None:
        """Why `value` is not allowed for this setting, or None if it is."""
        if value is None:
            return None if self.optional else "needs a value"
        if self.about.is_secret and value == SECRET_MASK:
            return f"is {SECRET_MASK}, which listings show instead of a secret: write the secret"
        if not _is_a(value, self.type):
            return f"takes {self.takes()}, not {self.shown(value)}"
        if self.about.choices is not None and value not in self.about.choices:
            choices = ", ".join(self.about.choices)
            hint = nearest(value, self.about.choices)
            return f"is one of {choices}, not {self.shown(value)}{hint}"
        if self.about.minimum is not None and not value >= self.about.minimum:
            return f"is at least {plain_number(self.about.minimum)}, not {self.shown(value)}"
        maximum = self.about.maximum
        if maximum is None and self.type is int:
            maximum = _WHOLE_MAX
        if maximum is not None and not value <= maximum:
            return f"is at most {plain_number(maximum)}, not {self.shown(value)}"
        return None if self.about.form is None else self.about.form(value)

    def doubt(self, value: Any) -> str | None:
        """Why a value that is allowed is probably in another unit; None if it is probably not."""
        if not _is_a(value, int) or not _is_a(self.default, int) or value == self.default:
            return None
        unit = self.name.split("_")
        if "ms" in unit and 0 < value < 60 and value <= self.default // 100:
            return f"is {value} ms: the unit is milliseconds, not seconds"
        if self.is_size and 0 < value < 1024 and self.default >= 16 * 1024:
            return f"is {value} bytes: the unit is bytes, not MiB"
        if "hours" in unit and value > 10 * 366 * 24:
            return f"is {value // (366 * 24)} years: the unit is hours"
        return None

    def shown(self, value: Any) -> str:
        """A value as messages show it, whether it is allowed or not."""
        if self.about.is_secret:
            return SECRET_MASK
        if isinstance(value, str):
            return shown(value)
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _WHOLE_MAX:
            return "a number of more than 64 bits"
        return repr(value)

    def takes(self) -> str:
        """Its type in words."""
        if self.is_size:
            return "a size in bytes (a whole number, or text like 64MiB)"
        return _WORDS[self.type]


_WORDS: dict[type, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
    tuple: "a list of texts",
}


def part_of(kind: type) -> str:
    """The name of the part that `kind` configures: `BrokerConfig` gives `broker`."""
    return kind.__name__.removesuffix("Config").lower()


@cache
def settings_of(kind: Any) -> Mapping[str, Declared]:
    """All settings that a configuration class declares, by name, in order of declaration."""
    hints = typing.get_type_hints(kind)
    declared: dict[str, Declared] = {}
    for each in fields(kind):
        about = each.metadata.get("setting")
        if about is None:
            continue
        plain, optional = _plain_type(hints[each.name])
        default = None if each.default is MISSING else each.default
        declared[each.name] = Declared(part_of(kind), each.name, plain, optional, default, about)
    return declared


@cache
def declared_by(kinds: tuple[type, ...]) -> Mapping[str, Declared]:
    """All settings of some configuration classes, by `part.name`."""
    return {each.key: each for kind in kinds for each in settings_of(kind).values()}


def check(config: Any) -> None:
    """Checks every value of a configuration that was built in code, and what they are together.

    Raises:
        ConfigError: a value is ill-typed or out of bounds; the text names the setting, in one line
            for each that is wrong.
    """
    check_values(config)
    part = part_of(config.__class__)
    faults = [f"{part}.{each.names[0]} {each.text}" for each in conflicts(config)]
    if faults:
        raise ConfigError("\n".join(faults))


def check_values(config: Any) -> None:
    """Checks every value of a configuration that was built in code, each by itself.

    Raises:
        ConfigError: as for `check`.
    """
    faults = []
    for each in settings_of(config.__class__).values():
        value = getattr(config, each.name)
        if complaint := each.complaint(value):
            faults.append(f"{each.key} {complaint}")
        elif doubt := each.doubt(value):
            logger.warning("%s %s", each.key, doubt)
    if faults:
        raise ConfigError("\n".join(faults))


def conflicts(config: Any) -> Iterator[Conflict]:
    """The conflicts of a configuration, which its class finds in its method `conflicts`."""
    found = getattr(config, "conflicts", None)
    if found is not None:
        yield from found()


def remarks(config: Any) -> Iterator[str]:
    """What whoever starts with a configuration should know; from its class's method `remarks`."""
    found = getattr(config, "remarks", None)
    if found is not None:
        yield from found()


def _plain_type(hint: Any) -> tuple[type, bool]:
    """The plain type of an annotation without None, and whether it allows None."""
    optional = False
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        choices = [each for each in typing.get_args(hint) if each is not type(None)]
        optional = len(choices) < len(typing.get_args(hint))
        hint = choices[0]
    origin = typing.get_origin(hint) or hint
    if origin is typing.Literal:
        origin = str
    if origin not in _WORDS:
        raise TypeError(f"a setting cannot be a {hint}")
    return origin, optional


def _is_a(value: Any, kind: type) -> bool:
    if kind is tuple:
        return isinstance(value, tuple) and all(isinstance(each, str) for each in value)
    if isinstance(value, bool):
        return kind is bool
    if kind is float:
        return isinstance(value, int | float)
    return isinstance(value, kind)


def plain_number(number: float) -> str:
    """A bound as text, without `.0` if it is whole."""
    return str(int(number)) if number == int(number) else str(number)
