"""Options as data: how one is declared, how texts become a frozen value, what a wrong one is told.

Names count without regard to upper and lower case. Pure.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from sprocket.base.errors import ConfigError, SprocketError
from sprocket.spark.options.values import Parser

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class About:
    """What is known of an option besides its default."""

    name: str
    parse: Parser
    doc: str


def option(
    name: str, parse: Parser, doc: str, *, default: Any = None, is_secret: bool = False
) -> Any:
    """Declares an option as a dataclass field.

    Args:
        name: what the user writes.
        parse: text to value; gets the name too, for its errors.
        doc: one sentence, shown in the documentation.
        is_secret: left out where options are shown.
    """
    about = About(name, parse, doc)
    return field(default=default, repr=not is_secret, metadata={"option": about})


#: What people write who come from elsewhere.
_ELSEWHERE = {
    "kafka.bootstrap.servers": "namesrvAddr",
    "bootstrap.servers": "namesrvAddr",
    "nameserver.addr": "namesrvAddr",
    "nameserver": "namesrvAddr",
    "nameservers": "namesrvAddr",
    "topic": "subscribe",
    "topics": "subscribe",
    "path": "subscribe",
    "topicspattern": "subscribePattern",
    "topicpattern": "subscribePattern",
    "queues": "assign",
    "groupid": "group",
    "kafka.group.id": "group",
    "group.id": "group",
    "groupidprefix": "group",
    "consumergroup": "group",
    "producergroup": "group",
    "subexpression": "tags",
    "tag": "tags",
    "sql92": "sql",
    "filter": "sql",
    "kafkaconsumer.polltimeoutms": "pullTimeoutMs",
    "starttimestamp": "startingTimestamp",
    "starttime": "startingTimestamp",
    "endtimestamp": "endingTimestamp",
    "endtime": "endingTimestamp",
    "aclaccesskey": "accessKey",
    "acl.access.key": "accessKey",
    "aclsecretkey": "secretKey",
    "acl.secret.key": "secretKey",
    "aclsecuritytoken": "securityToken",
    "storepath": "store",
    "storepathrootdir": "store",
    "brokername": "storeBroker",
    "maxrecordspertrigger": "maxOffsetsPerTrigger",
    "maxmessagespertrigger": "maxOffsetsPerTrigger",
    "partitions": "minPartitions",
    "numpartitions": "minPartitions",
    "includeproperties": "includeHeaders",
}


def parse(given: Mapping[str, str], *, kind: type[T], others: Iterable[type[Any]], reads: str) -> T:
    """Reads options into a dataclass whose fields are made with `option`.

    Args:
        others: declare options of other ways, refused with another text.
        reads: what `kind` is for, in words.

    Raises:
        ConfigError: an option does not exist, or its value cannot be taken. Names the option.
    """
    known = declared(kind)
    elsewhere: dict[str, tuple[str, About]] = {}
    for other in others:
        elsewhere.update(declared(other))
    found: dict[str, Any] = {}
    for name, value in given.items():
        entry = known.get(name.lower())
        if entry is None and name.lower() in elsewhere:
            raise ConfigError(f"option {elsewhere[name.lower()][1].name} is not for {reads}")
        if entry is None:
            raise ConfigError(unknown(name, [about.name for _, about in known.values()]))
        attribute, about = entry
        try:
            found[attribute] = about.parse(about.name, str(value))
        except ConfigError:
            raise
        except SprocketError as error:
            said = str(error)
            raise ConfigError(
                said if about.name in said else f"option {about.name}: {said}"
            ) from None
    return kind(**found)


def declared(kind: type[Any]) -> dict[str, tuple[str, About]]:
    """Attribute and declaration of each option, by its name in lower case."""
    return {
        one.metadata["option"].name.lower(): (one.name, one.metadata["option"])
        for one in fields(kind)
    }


def unknown(name: str, names: list[str]) -> str:
    """The error text for an option that does not exist: it names the nearest one."""
    by_lower = {one.lower(): one for one in names}
    nearest = _ELSEWHERE.get(name.lower())
    if nearest not in names:
        close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
        nearest = by_lower[close[0]] if close else None
    hint = f"did you mean {nearest}?" if nearest else f"there are: {', '.join(names)}"
    return f"the rocketmq source has no option {name}: {hint}"


def check_names(given: Iterable[str], kinds: Iterable[type[Any]]) -> None:
    """Raises ConfigError for a name that is no option of any of these kinds."""
    known: dict[str, tuple[str, About]] = {}
    for kind in kinds:
        known.update(declared(kind))
    for name in given:
        if name.lower() not in known:
            raise ConfigError(unknown(name, [about.name for _, about in known.values()]))
