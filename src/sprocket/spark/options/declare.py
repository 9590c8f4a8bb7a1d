"""Declares options as dataclass fields, and parses texts into frozen values. Pure.

Case does not matter in names. Errors name the option, or the nearest one if it does not exist.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from sprocket.base.errors import ConfigError, SprocketError
from sprocket.spark.options.values import Parser

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OptionInfo:
    """The declaration of an option but its default: name, parser and documentation."""

    name: str
    parse: Parser
    doc: str


def option(
    name: str, parse: Parser, doc: str, *, default: Any = None, is_secret: bool = False
) -> Any:
    """Declares an option as a dataclass field.

    Args:
        name: the name that users write.
        parse: turns the name and the text into a value; the name is for its errors.
        doc: one sentence for the documentation.
        is_secret: whether the value is left out of the `repr`.
    """
    about = OptionInfo(name, parse, doc)
    return field(default=default, repr=not is_secret, metadata={"option": about})


#: Characters of an unknown name that an error repeats.
_NAME_MAX = 80
#: Names of other connectors and of RocketMQ's clients, for the hint in errors.
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
    "cluster": "profile",
    "clientconfig": "configFile",
    "configpath": "configFile",
    "tls": "useTLS",
    "ssl": "useTLS",
    "tls.enable": "useTLS",
    "tls.client.trustcertpath": "tlsAuthorities",
    "kafka.ssl.truststore.location": "tlsAuthorities",
    "tls.client.certpath": "tlsCertificate",
    "tls.client.keypath": "tlsKey",
    "tls.client.keypassword": "tlsKeyPassword",
    "tls.client.authserver": "tlsCheck",
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
    """Parses options into a dataclass whose fields are made with `option`.

    Args:
        given: texts by name.
        kind: the dataclass.
        others: dataclasses for other uses; their options are refused as not for this one.
        reads: the use of `kind` in words, for errors.

    Raises:
        ConfigError: an option does not exist or has a wrong value. The text names the option.
    """
    known = declared(kind)
    elsewhere: dict[str, tuple[str, OptionInfo]] = {}
    for other in others:
        elsewhere.update(declared(other))
    found: dict[str, Any] = {}
    for name, value in given.items():
        entry = known.get(name.lower())
        if entry is None and name.lower() in elsewhere:
            raise ConfigError(f"option {elsewhere[name.lower()][1].name} is not for {reads}")
        if entry is None:
            others_names = [about.name for _, about in elsewhere.values()]
            names = [about.name for _, about in known.values()]
            raise ConfigError(unknown(name, names, others_names))
        attribute, about = entry
        try:
            found[attribute] = about.parse(about.name, str(value))
        except ConfigError:
            raise
        except SprocketError as error:
            reason = str(error)
            raise ConfigError(
                reason if f"option {about.name}" in reason else f"option {about.name}: {reason}"
            ) from None
    return kind(**found)


def declared(kind: type[Any]) -> dict[str, tuple[str, OptionInfo]]:
    """The attribute's name and the declaration of each option, by option name in lower case."""
    return {
        one.metadata["option"].name.lower(): (one.name, one.metadata["option"])
        for one in fields(kind)
    }


def given_of(options: Any, kind: type[Any], *, but: Collection[str] = ()) -> Iterator[str]:
    """The names of a class's options that have other values than their defaults.

    Args:
        but: fields that do not count.
    """
    for one in fields(kind):
        if one.name not in but and getattr(options, one.name) != one.default:
            yield one.metadata["option"].name


def unknown(name: str, names: Sequence[str], others: Sequence[str] = ()) -> str:
    """The error text for an option that does not exist: it names the nearest one.

    Args:
        names: the options that there are.
        others: those of other uses, which may be meant if none of `names` is like it.
    """
    near = _nearest(name, names) or _nearest(name, others)
    hint = f"did you mean {near}?" if near else f"there are: {', '.join(names)}"
    return f"the rocketmq source has no option {_cut(name)}: {hint}"


def _nearest(name: str, names: Sequence[str]) -> str | None:
    by_lower = {one.lower(): one for one in names}
    word = _cut(name.lower())
    if (known := _ELSEWHERE.get(word)) in names:
        return known
    close = difflib.get_close_matches(word, by_lower, n=1, cutoff=0.6)
    return by_lower[close[0]] if close else None


def _cut(name: str) -> str:
    return name if len(name) <= _NAME_MAX else f"{name[:_NAME_MAX]}…"


def check_names(given: Iterable[str], kinds: Iterable[type[Any]]) -> None:
    """Raises ConfigError for a name that is no option of any of these kinds."""
    known: dict[str, tuple[str, OptionInfo]] = {}
    for kind in kinds:
        known.update(declared(kind))
    for name in given:
        if name.lower() not in known:
            raise ConfigError(unknown(name, [about.name for _, about in known.values()]))
