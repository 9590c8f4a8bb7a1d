"""RocketMQ's own `broker.conf`, `namesrv.conf` and `.properties` become settings. Pure.

They contain RocketMQ's names, of any release from 3.0.8 on, and may contain ours (`part.name`). A
setting that has no effect here is taken, and all of them are reported in one note. One that asks
for safety that is missing here is refused: a broker must not run without access control, or
without replicas, when its file demands them. Whatever is left is a typing error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from sprocket.base.config import Declared, declared_by
from sprocket.base.decoding import undecoded
from sprocket.base.java_properties import JavaProperty, properties
from sprocket.base.loaded_config import LoadedConfig
from sprocket.base.rocketmq_settings import rocketmq_settings
from sprocket.base.setting_values import from_text
from sprocket.base.suggestions import nearest, shown

_COMMENT = re.compile(r"\s(#|//|!)")
#: A file with more faults is another kind of file, and suggestions for all would take long.
_SUGGESTIONS_MAX = 100
_QUOTED = re.compile(r"""(["']).*\1""", re.DOTALL)


def take_properties(loaded: LoadedConfig, name: str, text: str) -> None:
    """Takes the settings of a file.

    Args:
        name: the file's name, for messages.
    """
    known = _names(loaded.kinds)
    given: dict[str, JavaProperty] = {}
    passed: dict[str, list[str]] = {}
    for each in _outside_markup(properties(text)):
        where = f"{name}:{each.line}"
        declared = known.get(each.key)
        suggests = len(loaded.faults) < _SUGGESTIONS_MAX
        if fault := _fault(each, declared, loaded.kinds if suggests else None):
            loaded.faults.append(f"{where}: {fault}")
        elif declared is not None:
            earlier = given.get(declared.key)
            if earlier is not None:
                loaded.notes.append(_repeated(where, each, earlier))
                if _rank(declared, earlier.key) < _rank(declared, each.key):
                    continue
            given[declared.key] = each
            _set(loaded, declared, each, where)
        else:
            reason = rocketmq_settings().without_effect[each.key]
            passed.setdefault(reason, []).append(f"{each.key} (line {each.line})")
    if passed:
        whole = "; ".join(f"{', '.join(names)}, since {why}" for why, names in passed.items())
        loaded.notes.append(f"{name}: these settings have no effect here: {whole}")


def _outside_markup(found: Iterable[JavaProperty]) -> Iterator[JavaProperty]:
    """Without the lines of `<!-- … -->`, in which some of RocketMQ's own files have their licence.

    RocketMQ reads these lines as settings that it does not know.
    """
    is_inside = False
    for each in found:
        is_inside = is_inside or each.key.startswith("<!--")
        if not is_inside:
            yield each
        elif "-->" in f"{each.key} {each.value}":
            is_inside = False


@cache
def _names(kinds: tuple[type, ...]) -> Mapping[str, Declared]:
    """The settings by all names that they may have in a file."""
    known: dict[str, Declared] = {}
    for declared in declared_by(kinds).values():
        for spelling in (*declared.rocketmq_names, declared.key):
            known.setdefault(spelling, declared)
    return known


@cache
def _all_names(kinds: tuple[type, ...]) -> frozenset[str]:
    """These, and RocketMQ's names of what has no effect here."""
    return frozenset((*_names(kinds), *rocketmq_settings().without_effect))


# The order of the tests matters: a setting that we support counts first, then one that we must
# refuse, then one of RocketMQ's that may be passed over.
def _fault(
    each: JavaProperty, declared: Declared | None, kinds: tuple[type, ...] | None
) -> str | None:
    """What is wrong with a line, before its value is looked at.

    Args:
        kinds: whose names may be suggested for one that is not known; None for no suggestion.
    """
    table = rocketmq_settings()
    demanded = None if declared is not None else table.demanded(each.key, each.value)
    show = shown if declared is None else declared.shown
    if each.damage is not None:
        return f"{show(each.damage)} is no escape such as \\u00e9; a backslash is written twice"
    if demanded is not None:
        return (
            f"'{each.key}={each.value}' asks for {demanded}, which there is not here; "
            "take the line out to go without"
        )
    if declared is None and each.key not in table.without_effect:
        if wrong := undecoded(each.key):
            return f"the name {shown(each.key)} is not UTF-8 ({wrong})"
        hint = "" if kinds is None else nearest(each.key, _all_names(kinds))
        if not each.is_pair:
            hint += "; the line has no `=`, so it may be a comment without `#`"
        return (
            f"unknown setting '{each.key}'{hint}"
            if each.key.isprintable()
            else (f"unknown setting {shown(each.key)}{hint}")
        )
    if declared is None and each.key not in table.demands:
        return None
    if _COMMENT.search(each.value):
        return (
            f"{each.key}={show(each.value)}: a comment stands on a line of its own; here it "
            "would be a part of the value"
        )
    if len(each.value) > 1 and _QUOTED.fullmatch(each.value):
        return (
            f"{each.key} is written without quotes, not {show(each.value)}: they would be a part "
            "of the value"
        )
    return None


def _set(loaded: LoadedConfig, declared: Declared, each: JavaProperty, where: str) -> None:
    """Records a value; one out of bounds becomes the nearest bound where RocketMQ does so."""
    about = declared.about
    low, high = about.minimum, about.maximum
    if about.is_clamped and low is not None and high is not None and each.value.isdecimal():
        given = from_text(declared, each.value)
        taken = min(max(given, int(low)), int(high))
        if taken != given:
            loaded.notes.append(f"{where}: {each.key}={given} counts as {taken}, as in RocketMQ")
        loaded.set(declared, taken, where, each.key)
        return
    if declared.is_size and each.key in declared.rocketmq_names[1:]:
        loaded.notes.append(
            f"{where}: {each.key} is the older name of {declared.rocketmq_names[0]}. RocketMQ "
            "reads it until 4.5.1 and ignores it from 4.5.2 on, so a store of theirs may have "
            f"files of the default size, {declared.default} bytes"
        )
    loaded.set_text(declared, each.value, where, each.key)


def _rank(declared: Declared, name: str) -> int:
    return declared.rocketmq_names.index(name) if name in declared.rocketmq_names else -1


def _repeated(where: str, each: JavaProperty, earlier: JavaProperty) -> str:
    if each.key == earlier.key:
        return f"{where}: {each.key} stands in line {earlier.line} too; the last one counts"
    return f"{where}: {each.key} and {earlier.key} (line {earlier.line}) set the same"
