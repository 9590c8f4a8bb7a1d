"""What becomes of RocketMQ's settings that are none of ours by another name.

The table `rocketmq_settings.txt` beside this module classifies each name that a release of
RocketMQ from 3.0.8 to 5.5.0 knows and that no setting of ours has as `rocketmq=`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import NamedTuple

_HEAD = re.compile(r"\[(without effect|refused)\] (.+)")
#: Java's broker takes only `true` for true; a file that says it in another way asks for it too.
_TRUE = {"yes": "true", "on": "true", "1": "true"}
_ANY = "*"


class RocketmqSettings(NamedTuple):
    """The table.

    Attributes:
        without_effect: by name, why the setting has no effect here.
        demands: by name and by value in lower case, the missing feature that is demanded.
    """

    without_effect: Mapping[str, str]
    demands: Mapping[str, Mapping[str, str]]

    def demanded(self, name: str, value: str) -> str | None:
        """The missing feature that a setting demands, in words; None if there is none."""
        values = self.demands.get(name)
        folded = value.strip().lower()
        if values is None or not folded:
            return None
        return values.get(_TRUE.get(folded, folded)) or values.get(_ANY)


@cache
def rocketmq_settings() -> RocketmqSettings:
    """The table, read once."""
    without_effect: dict[str, str] = {}
    demands: dict[str, dict[str, str]] = {}
    kind, what = "", ""
    for line in resources.files("sprocket.base").joinpath(_FILE).read_text("utf-8").splitlines():
        if head := _HEAD.fullmatch(line):
            kind, what = head.groups()
        elif line and not line.startswith("#"):
            for word in line.split():
                name, _, value = word.partition("=")
                if kind == "refused":
                    demands.setdefault(name, {})[value.lower()] = what
                else:
                    without_effect[name] = what
    return RocketmqSettings(without_effect, demands)


_FILE = "rocketmq_settings.txt"
