"""Rules: who may take how much. Pure.

A rule is a text of words: a kind, a name, and the limits. `topic orders requests=500` limits one
topic, `client * requests=1000 bytes_in=10MiB` every client by itself, and `ip 10.1.* connections=5`
each address that begins so. A limit that the rule of a name does not state comes from the one with
the next shorter pattern, and in the end from `*`. The words are those of Kafka's quotas as far as
those have them: a default for all of a kind, and overrides by name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum

from sprocket.base.errors import UsageError
from sprocket.base.suggestions import nearest, shown


class QuotaKind(StrEnum):
    """Whose quota it is."""

    IP = "ip"
    CLIENT = "client"
    USER = "user"
    TOPIC = "topic"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class Allowance:
    """How much may pass in a time.

    Attributes:
        rate: units a second.
        burst: units at once, after a pause.
    """

    rate: float
    burst: float


@dataclass(frozen=True, slots=True)
class Quota:
    """The limits of one name; None where there is none.

    Attributes:
        requests: requests a second.
        bytes_in: bytes of the bodies of requests, a second.
        bytes_out: bytes of the bodies of replies, a second.
        new_topics, new_groups: how many may be made, as units a second.
        connections: connections at the same time.
        held: pulls, pops and notifications that wait at the same time.
    """

    requests: Allowance | None = None
    bytes_in: Allowance | None = None
    bytes_out: Allowance | None = None
    new_topics: Allowance | None = None
    new_groups: Allowance | None = None
    connections: int | None = None
    held: int | None = None


#: The limits that each kind can have.
_OF_CLIENTS = tuple(each.name for each in fields(Quota))
LIMITS: dict[QuotaKind, tuple[str, ...]] = {
    QuotaKind.IP: _OF_CLIENTS,
    QuotaKind.CLIENT: _OF_CLIENTS,
    QuotaKind.USER: _OF_CLIENTS,
    QuotaKind.TOPIC: ("requests", "bytes_in", "bytes_out", "held"),
    QuotaKind.GROUP: ("requests", "bytes_out", "held"),
}
_COUNTS = ("connections", "held")
_HOURLY = ("new_topics", "new_groups")
_NUMBER = re.compile(r"(\d{1,15})([kmgt]?)(?:i?b)?", re.IGNORECASE)
#: How limits are named in refusals.
UNITS = {
    "requests": "requests a second",
    "bytes_in": "bytes a second to the server",
    "bytes_out": "bytes a second from the server",
    "new_topics": "new topics an hour",
    "new_groups": "new groups an hour",
    "connections": "connections",
    "held": "waiting pulls and pops",
}
#: A limit that a shorter pattern sets, and that does not count for this one.
_NONE = "none"
RULES_MAX = 10_000


@dataclass(frozen=True, slots=True)
class QuotaRule:
    """One rule: the limits of a name or pattern; None lifts a limit."""

    kind: QuotaKind
    pattern: str
    limits: dict[str, Allowance | int | None]


@dataclass(frozen=True, slots=True)
class QuotaRules:
    """All rules.

    Attributes:
        kinds: the kinds that have any.
    """

    kinds: frozenset[QuotaKind] = frozenset()
    _exact: dict[tuple[QuotaKind, str], QuotaRule] = field(default_factory=dict)
    #: Rules of patterns, the shorter ones first.
    _patterns: dict[QuotaKind, list[QuotaRule]] = field(default_factory=dict)

    @classmethod
    def parse(cls, texts: Sequence[str]) -> QuotaRules:
        """Reads rules.

        Raises:
            UsageError: one of them is invalid; the text says which one, and why.
        """
        if len(texts) > RULES_MAX:
            raise UsageError(f"{len(texts)} rules are too many, {RULES_MAX} are allowed")
        exact: dict[tuple[QuotaKind, str], QuotaRule] = {}
        patterns: dict[tuple[QuotaKind, str], QuotaRule] = {}
        for text in texts:
            rule = _parsed(text)
            table = patterns if rule.pattern.endswith("*") else exact
            if (key := (rule.kind, rule.pattern)) in table:
                raise UsageError(f"there are two rules for {rule.kind} {rule.pattern}")
            table[key] = rule
        ranked: dict[QuotaKind, list[QuotaRule]] = {}
        for rule in sorted(patterns.values(), key=lambda each: len(each.pattern)):
            ranked.setdefault(rule.kind, []).append(rule)
        kinds = frozenset(kind for kind, _ in (*exact, *patterns))
        return cls(kinds, exact, ranked)

    def quota(self, kind: QuotaKind, name: str) -> Quota | None:
        """The limits of a name; None if no rule names it."""
        found: list[QuotaRule] = [
            each for each in self._patterns.get(kind, ()) if name.startswith(each.pattern[:-1])
        ]
        if (rule := self._exact.get((kind, name))) is not None:
            found.append(rule)
        quota = None
        for each in found:
            quota = replace(quota or Quota(), **each.limits)  # type: ignore[arg-type]
        return quota

    def has(self, *limits: str) -> bool:
        """Whether any rule sets one of these limits."""
        rules = [*self._exact.values(), *(one for many in self._patterns.values() for one in many)]
        return any(not rule.limits.keys().isdisjoint(limits) for rule in rules)


def _parsed(text: str) -> QuotaRule:
    words = text.split()
    if len(words) < 3:
        raise UsageError(
            f"a rule is a kind, a name and limits, such as `topic orders requests=500`, "
            f"not {shown(text)}"
        )
    kind, pattern, *limits = words
    if kind not in list(QuotaKind):
        kinds = ", ".join(QuotaKind)
        raise UsageError(
            f"a rule begins with {kinds}, not {shown(kind)}{nearest(kind, list(QuotaKind))}"
        )
    if "*" in pattern[:-1]:
        raise UsageError(f"a * stands at the end of a name only, not as in {shown(pattern)}")
    found: dict[str, Allowance | int | None] = {}
    for each in limits:
        name, _, value = each.partition("=")
        if name not in LIMITS[QuotaKind(kind)]:
            allowed = ", ".join(LIMITS[QuotaKind(kind)])
            raise UsageError(f"limits of a {kind} are {allowed}, not {shown(name)}")
        if name in found:
            raise UsageError(f"{kind} {pattern} has {name} twice")
        found[name] = _limit(name, value)
    return QuotaRule(QuotaKind(kind), pattern, found)


def _limit(name: str, text: str) -> Allowance | int | None:
    if text == _NONE:
        return None
    rate, slash, burst = text.partition("/")
    amount = _amount(name, rate)
    if name in _COUNTS:
        if slash:
            raise UsageError(f"{name} takes one number, not {shown(text)}")
        return amount
    most = _amount(name, burst) if slash else amount
    return Allowance(amount / 3600 if name in _HOURLY else amount, most)


def _amount(name: str, text: str) -> int:
    match = _NUMBER.fullmatch(text)
    if match is None or (match[2] and "bytes" not in name) or not int(match[1]):
        wanted = "a size such as 10MiB" if "bytes" in name else "a whole number above 0"
        raise UsageError(f"{name} takes {wanted}, or {_NONE}, not {shown(text)}")
    return int(match[1]) << (10 * " kmgt".index(match[2].lower() or " "))


def quotas(value: Sequence[str]) -> str | None:
    """The form of the setting; see `sprocket.base.config`."""
    try:
        QuotaRules.parse(value)
    except UsageError as error:
        return f"is a list of rules: {error}"
    return None
