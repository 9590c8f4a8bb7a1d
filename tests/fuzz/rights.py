"""Targets about what users may do: policies, and requests at a closed server. As in `targets`."""

from __future__ import annotations

import contextlib
import functools
import ipaddress
from collections.abc import Callable, Mapping, Sequence

from sprocket.auth.accounts import AccountTable, User, UserKind, UserStatus
from sprocket.auth.guard import Guard, GuardRules
from sprocket.auth.nameserver_needs import NAMESERVER_RULES
from sprocket.auth.needs import RULES, Rule, needs_of
from sprocket.auth.policies import Action, Need, PolicyEntry, UserPolicies
from sprocket.auth.resources import Resource, ResourceKind
from sprocket.base.errors import NoPermission, SprocketError
from sprocket.protocol.command import Command

_NAMES = ("", "a", "ab", "abc", "b", "ba", "ab-", "abcd")
_KINDS = (*ResourceKind, None)
_ACTIONS = tuple(Action)
_SOURCES = ("10.0.0.7", "10.0.1.7", "::1", "::ffff:10.0.0.9", "", "nowhere")
_NETWORKS: tuple[Sequence[str], ...] = ((), ("10.0.0.0/24",), ("10.0.0.7",), ("::/0", "10.0.1.7"))
#: Bytes of one entry, and of a question.
_ENTRY, _QUESTION = 5, 5
_USERS = ("root", "alice", "bob", "off", "")


def policies(data: bytes) -> None:
    """Which entry decides: the same as by looking at all of them, in whatever order they are made.

    The first bytes are a question; then five a policy.
    """
    if len(data) < _QUESTION + _ENTRY:
        return
    kind, name, action, other, source = data[:_QUESTION]
    resource = Resource(tuple(ResourceKind)[kind % 4], _NAMES[name % len(_NAMES)] or "x")
    actions = (_ACTIONS[1:][action % 7], _ACTIONS[1:][other % 7])
    where = _SOURCES[source % len(_SOURCES)]
    entries: list[PolicyEntry] = []
    for at in range(_QUESTION, min(len(data), 200) - _ENTRY + 1, _ENTRY):
        with contextlib.suppress(SprocketError):
            entries.append(_entry(data[at : at + _ENTRY]))
    by_place = {(each.kind, each.resource): each for each in entries}
    asked = Need(resource, actions)
    allowed = any(_oracle(list(by_place.values()), resource, each, where) for each in actions)
    assert UserPolicies(entries).judge(asked, where).is_allowed == allowed
    backwards = UserPolicies(list(by_place.values())[::-1])
    assert backwards.judge(asked, where).is_allowed == allowed
    merged = UserPolicies().with_entries(entries)
    assert merged.judge(asked, where).is_allowed == allowed


def _entry(data: bytes) -> PolicyEntry:
    kind = _KINDS[data[0] % 5]
    name = _NAMES[data[1] % len(_NAMES)]
    star = "*" if data[0] & 0x80 or not name else ""
    bits = data[2] or 1
    return PolicyEntry.of(
        "*" if kind is None else f"{kind}:{name}{star}",
        [each for number, each in enumerate(_ACTIONS) if bits >> number & 1],
        ("Allow", "Deny")[data[3] & 1],
        _NETWORKS[data[4] % len(_NETWORKS)],
        ("Custom", "Default")[data[3] >> 1 & 1],
    )


def _oracle(entries: list[PolicyEntry], resource: Resource, action: Action, source: str) -> bool:
    """Whether the narrowest of all entries that are about it allows it."""

    def rank(entry: PolicyEntry) -> tuple[bool, bool, bool, int]:
        pattern = entry.resource
        is_any = pattern.kind is None
        return (entry.kind == "Default", is_any, pattern.is_prefix, -len(pattern.name))

    def is_about(entry: PolicyEntry) -> bool:
        pattern = entry.resource
        if pattern.kind not in (None, resource.kind):
            return False
        same = resource.name.startswith if pattern.is_prefix else resource.name.__eq__
        return same(pattern.name) and _counts(entry, action, source)

    found = sorted(filter(is_about, entries), key=rank)
    return bool(found) and found[0].decision == "Allow"


def _counts(entry: PolicyEntry, action: Action, source: str) -> bool:
    if not {action, Action.ALL} & entry.actions:
        return False
    if not entry.networks:
        return True
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address(source.removeprefix("::ffff:"))
        return any(address in ipaddress.ip_network(each) for each in entry.networks)
    return False


def closed_requests(data: bytes) -> None:
    """Any request of any code at a closed broker and name server, by each user and by nobody.

    Four bytes are the code; then fields by lines, a blank line and the body. Whoever passes is a
    super user, or has each right that the request needs; nobody passes without a name.
    """
    if len(data) < 4:
        return
    head, _, body = data[4:2_000].partition(b"\n\n")
    lines = (line.partition("=") for line in head.decode("utf-8", "replace").split("\n"))
    fields = {name: value for name, _, value in lines if name}
    code = int.from_bytes(data[:4], "big") & 0x7FFFFFFF
    for table, guard in _guards():
        for user in _USERS:
            given = {**fields, "AccessKey": user, "Signature": "x"} if user else fields
            command = Command(code, body=body, source=given)
            passed = False
            with contextlib.suppress(SprocketError):
                guard.check(command, "10.0.0.7")
                passed = True
            if not passed or user == "root":
                continue
            assert user in ("alice", "bob"), (user, code)
            needs = needs_of(command, "c", table)
            assert needs is not None, (user, code)
            assert all(_may(user, each) for each in needs), (user, needs)


def _may(user: str, need: Need) -> bool:
    """Alice has all rights to topics and groups that begin with `a`; Bob may read them but `ab`."""
    kind, name = need.resource
    if kind not in (ResourceKind.TOPIC, ResourceKind.GROUP) or not name.startswith("a"):
        return False
    return user == "alice" or (Action.GET in need.actions and name != "ab")


class _UncheckedGuard(Guard):
    """A guard that takes every signature of a user: what is tried here is what comes after."""

    def _authenticated(self, command: Command) -> User:
        user = self._accounts.users.get(command.fields.get("AccessKey", ""))
        if user is None or not user.is_enabled:
            raise NoPermission("nobody")
        return user


@functools.cache
def _guards() -> list[tuple[Mapping[int, Rule], Guard]]:
    accounts = AccountTable()
    for user in (
        User("root", "x", UserKind.SUPER), User("alice", "x"), User("bob", "x"),
        User("off", "x", UserKind.SUPER, UserStatus.DISABLED),
    ):  # fmt: skip
        accounts.create(user)
    starts = ("Topic:a*", "Group:a*")
    accounts.add_entries("alice", [PolicyEntry.of(each, ["All"], "Allow") for each in starts])
    accounts.add_entries("bob", [PolicyEntry.of(each, ["Get"], "Allow") for each in starts])
    exact = ("Topic:ab", "Group:ab")
    accounts.add_entries("bob", [PolicyEntry.of(each, ["All"], "Deny") for each in exact])
    rules = GuardRules(True, True, frozenset(), frozenset(), "c")
    return [
        (table, _UncheckedGuard(accounts, lambda: rules, table))
        for table in (RULES, NAMESERVER_RULES)
    ]


def _closed_seeds() -> list[bytes]:
    fields = (
        b"topic=ab\nconsumerGroup=abc\ngroup=a\nb=ab\nsubject=User:bob\nsrcGroup=a\ndestGroup=b\n"
        b"topicList=a;ab\nparentTopic=ab"
    )
    body = b'{"consumerDataSet":[{"groupName":"a","subscriptionDataSet":[{"topic":"%RETRY%a"}]}]}'
    lite = b'{"subscriptionSet":[{"group":"a","topic":"ab"}],"consumerGroup":"a","topic":"b"}'
    codes = sorted({*RULES, *NAMESERVER_RULES, 999})
    return [
        code.to_bytes(4, "big") + fields + b"\n\n" + (body, lite)[number % 2]
        for number, code in enumerate(codes)
    ]


RIGHTS = (policies, closed_requests)
RIGHTS_SEEDS: dict[str, Callable[[], list[bytes]]] = {
    "policies": lambda: [
        bytes([2, 3, 1, 2, 0, 2, 3, 2, 0, 0, 0x82, 1, 1, 1, 0]),
        bytes([3, 1, 0, 0, 1, 4, 0, 255, 0, 1, 0x83, 2, 6, 2, 2]),
    ],
    "closed_requests": _closed_seeds,
}
