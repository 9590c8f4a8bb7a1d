"""What the accounts of RocketMQ 4.x's `plain_acl.yml` become: users and policies. Pure.

The rules of 4.x, in the order in which it looks (PlainPermissionManager.validate and checkPerm of
RocketMQ 4.9.8), and what says the same here:

1. From a white address of the file everything passes, also without a signature. Nothing here says
   that.
2. From a white address of the account everything passes: a custom entry for all resources, which
   counts from these networks only. The signature is needed here.
3. Anybody may send to the trace topic: a custom entry.
4. A topic or group that is named has the permissions with it and no others; the rest has the
   default permissions, or none. What is granted is the custom policy. What is refused is in the
   default policy, beside the default permissions, where the narrower entry decides.
5. An account with `admin` and without permissions may do everything: a super user. With permissions
   it may make and delete topics and groups and change settings, and sends and consumes by its
   permissions.

What 4.x does not check at all, such as reading settings or resetting offsets, it lets everybody do
who signs. Here such requests need rights, or a super user.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from sprocket.auth.accounts import User, UserKind
from sprocket.auth.plain_addresses import EVERYWHERE
from sprocket.auth.plain_files import (
    RETRY_PREFIX,
    LineText,
    PlainAccount,
    PlainFile,
    PlainPermission,
)
from sprocket.auth.policies import (
    NETWORKS_MAX,
    Action,
    Decision,
    PolicyEntry,
    PolicyKind,
    UserPolicies,
)
from sprocket.auth.resources import EVERYTHING, ResourceKind, ResourcePattern
from sprocket.base.errors import ConfigError, UsageError
from sprocket.protocol.bodies.accounts import UserBody

_TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
_BOTH = frozenset({Action.PUB, Action.SUB})
#: What 4.x lets only an account with `admin` do with topics and groups.
_OPERATE = frozenset({Action.CREATE, Action.DELETE})
_TRACE = f"Allow Pub on Topic:{_TRACE_TOPIC}"
#: What no entry says is refused anyway.
_NOTHING = "nothing: what no policy allows is refused"


class ImportLine(NamedTuple):
    """What a line of a file becomes.

    Attributes:
        user: the account that it belongs to; empty for none.
        is_lost: whether nothing here says the same.
    """

    file: str
    line: int
    user: str
    text: str
    becomes: str
    is_lost: bool


class ImportPlan(NamedTuple):
    """What files become.

    Attributes:
        policies: the entries of each user, by name.
    """

    users: tuple[User, ...]
    policies: Mapping[str, tuple[PolicyEntry, ...]]
    lines: tuple[ImportLine, ...]

    @property
    def lost(self) -> list[ImportLine]:
        """The lines of which nothing here says the same."""
        return [each for each in self.lines if each.is_lost]


def import_plan(files: Sequence[PlainFile]) -> ImportPlan:
    """What files become, in the order in which RocketMQ reads them: the first account counts.

    Raises:
        ConfigError: an account cannot be a user here; each fault is a line of the text.
    """
    users: dict[str, User] = {}
    policies: dict[str, tuple[PolicyEntry, ...]] = {}
    lines: list[ImportLine] = []
    faults: list[str] = []
    for file in files:
        lines += _global_lines(file)
        for account in file.accounts:
            name = account.name.text
            made = _Account(file.name, account)
            if name in users:
                text = "nothing: the first account of this name counts"
                made.line(account.name, text, label="accessKey", is_lost=True)
            else:
                try:
                    users[name] = made.user()
                    policies[name] = made.checked_entries()
                except UsageError as error:
                    faults.append(f"{file.name}, line {account.name.line}: {error}")
            lines += sorted(made.lines, key=lambda each: each.line)
    if faults:
        raise ConfigError("\n".join(faults))
    return ImportPlan(tuple(users.values()), policies, tuple(lines))


def _global_lines(file: PlainFile) -> Iterator[ImportLine]:
    for at, _ in file.white:
        yield ImportLine(
            file.name,
            at.line,
            "",
            f"globalWhiteRemoteAddresses: {at.text}",
            "nothing: each request is signed, wherever it comes from",
            True,
        )


class _Account:
    """Turns one account into a user and entries, and keeps what its lines become."""

    def __init__(self, file: str, account: PlainAccount) -> None:
        self._file = file
        self._account = account
        self.lines: list[ImportLine] = []

    def line(self, at: LineText, becomes: str, *, label: str = "", is_lost: bool = False) -> None:
        text = f"{label}: {at.text}" if label else at.text
        self.lines.append(
            ImportLine(self._file, at.line, self._account.name.text, text, becomes, is_lost)
        )

    @property
    def _is_super(self) -> bool:
        return self._account.is_admin and not (self._account.topics or self._account.groups)

    def user(self) -> User:
        """The user.

        Raises:
            UsageError: its name or key is not one that a user here may have.
        """
        account = self._account
        kind = UserKind.SUPER if self._is_super else UserKind.NORMAL
        body = UserBody(password=account.secret_key, user_type=kind)
        user = User.of_body(account.name.text, body)
        what = "a super user, whose password is the secretKey"
        if not user.is_super:
            what = f"a normal user, whose password is the secretKey; {_TRACE}"
        self.line(account.name, what, label="accessKey")
        return user

    def checked_entries(self) -> tuple[PolicyEntry, ...]:
        """Its policies; none for a super user, who may do everything.

        Raises:
            UsageError: there are too many of them, or too many networks for one.
        """
        return tuple(UserPolicies().with_entries(self._entries()).entries)

    def _entries(self) -> Iterator[PolicyEntry]:
        account = self._account
        if self._is_super:
            self._says_nothing_more()
            return
        if account.white is not None:
            yield self._from_white(*account.white)
        if account.is_admin:
            cluster = ResourcePattern(ResourceKind.CLUSTER, "", True)
            yield PolicyEntry(cluster, frozenset({Action.ALL}), Decision.ALLOW)
        named = self._named()
        for kind, default in (
            (ResourceKind.TOPIC, account.default_topic),
            (ResourceKind.GROUP, account.default_group),
        ):
            yield from self._of_kind(kind, default, named[kind])

    def _says_nothing_more(self) -> None:
        account = self._account
        if account.white is not None:
            text = "nothing more than super; each request is signed, also from there"
            self.line(account.white[0], text, label="whiteRemoteAddress", is_lost=True)
        for label, each in (
            ("defaultTopicPerm", account.default_topic),
            ("defaultGroupPerm", account.default_group),
        ):
            if each is not None:
                self.line(each.at, "nothing more than super", label=label)

    def _from_white(self, at: LineText, networks: tuple[str, ...]) -> PolicyEntry:
        if len(networks) > NETWORKS_MAX:
            raise UsageError(
                f"whiteRemoteAddress in line {at.line} is {len(networks)} networks, and an entry "
                f"has at most {NETWORKS_MAX}"
            )
        where = () if networks == EVERYWHERE else networks
        entry = PolicyEntry(EVERYTHING, frozenset({Action.ALL}), Decision.ALLOW, where)
        self.line(
            at,
            f"{entry}; each request is signed, also from there",
            label="whiteRemoteAddress",
            is_lost=True,
        )
        return entry

    def _named(self) -> dict[ResourceKind, dict[str, PlainPermission]]:
        """The permissions with a name. A retry topic stands for its group, and the last counts."""
        found: dict[ResourceKind, dict[str, PlainPermission]] = {
            ResourceKind.TOPIC: {},
            ResourceKind.GROUP: {},
        }
        for kind, permissions in (
            (ResourceKind.GROUP, self._account.groups),
            (ResourceKind.TOPIC, self._account.topics),
        ):
            for each in permissions:
                name, place = each.name, kind
                if kind == ResourceKind.TOPIC and name.startswith(RETRY_PREFIX):
                    name, place = name.removeprefix(RETRY_PREFIX), ResourceKind.GROUP
                if not name or "*" in name:
                    self.line(each.at, "nothing: 4.x takes * for a letter of a name", is_lost=True)
                    continue
                found[place][name] = each
        return found

    def _of_kind(
        self,
        kind: ResourceKind,
        default: PlainPermission | None,
        named: Mapping[str, PlainPermission],
    ) -> Iterator[PolicyEntry]:
        """The entries for topics, or for groups.

        Those of the default policy come first: RocketMQ 5.3.3 lets the later one of two decide.
        """
        rights = _actions(default.rights) if default else frozenset[Action]()
        granted = rights | (_OPERATE if self._account.is_admin else frozenset())
        if granted:
            yield PolicyEntry(
                ResourcePattern(kind, "", True), granted, Decision.ALLOW, kind=PolicyKind.DEFAULT
            )
        if default is not None:
            entry = next(iter(_entries(kind, "", rights, PolicyKind.DEFAULT)), None)
            label = f"default{kind}Perm"
            self.line(default.at, _said(default, [entry] if entry else []), label=label)
        denied: list[PolicyEntry] = []
        for name, each in named.items():
            own = _actions(each.rights)
            said = list(_entries(kind, name, own, PolicyKind.CUSTOM))
            refused = list(_denials(kind, name, own, rights, each))
            self.line(each.at, _said(each, [*said, *refused]))
            denied += refused
            if kind == ResourceKind.TOPIC and name == _TRACE_TOPIC:
                continue
            yield from said
        if kind == ResourceKind.TOPIC:
            own = _actions(named[_TRACE_TOPIC].rights) if _TRACE_TOPIC in named else frozenset()
            yield from _entries(kind, _TRACE_TOPIC, own | {Action.PUB}, PolicyKind.CUSTOM)
        yield from denied


def _actions(rights: Iterable[str]) -> frozenset[Action]:
    return frozenset(Action(each) for each in rights)


def _entries(
    kind: ResourceKind, name: str, actions: frozenset[Action], policy: PolicyKind
) -> Iterator[PolicyEntry]:
    if actions:
        pattern = ResourcePattern(kind, name, not name)
        yield PolicyEntry(pattern, actions, Decision.ALLOW, kind=policy)


def _denials(
    kind: ResourceKind,
    name: str,
    own: frozenset[Action],
    by_default: frozenset[Action],
    given: PlainPermission,
) -> Iterator[PolicyEntry]:
    """What the default permissions would allow and this one does not; DENY is said in any case."""
    actions = _BOTH - own if not own else by_default - own
    if actions:
        pattern = ResourcePattern(kind, name, False)
        yield PolicyEntry(pattern, actions, Decision.DENY, kind=PolicyKind.DEFAULT)


def _said(given: PlainPermission, entries: Sequence[PolicyEntry]) -> str:
    text = "; ".join(map(str, entries)) or _NOTHING
    return text if given.is_known else f"{text} (4.x knows no such word, and refuses)"
