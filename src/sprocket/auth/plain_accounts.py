"""What the accounts of RocketMQ 4.x's `plain_acl.yml` may do, by the rules of 4.x. Pure.

They stand in the place of users and policies at a broker that reads these files. In this order, as
PlainPermissionManager.validate and checkPerm of RocketMQ 4.9.8:

1. From a white address of a file everything passes; from one of an account, what has its key.
   Neither needs a signature.
2. Anybody may send to the trace topic.
3. An account with `admin` and without permissions may do everything.
4. A topic or group that is named has the permissions with it; the rest has the default ones, or
   none. What needs `Sub` or `Pub` is decided by these, also for an administrator.
5. What changes something else needs `admin`.

RocketMQ 4.9.8 knows the needs of nine requests and of five for administrators, and lets every
account do all others: send batches, end transactions and pull "lite" at any topic, lock queues,
reset offsets, read settings and messages, and change the accounts themselves. Here each request has
the needs that the table in `needs` says, and where `Get` or `List` on a topic or group is enough,
the account has some permission there. Replies to requests need none, as in 4.9.8: an account that
answers requests cannot name the topic through which they go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from sprocket.auth.accounts import User, UserKind
from sprocket.auth.plain_files import RETRY_PREFIX, PlainAccount, PlainFile, PlainPermission
from sprocket.auth.policies import Action, Judgement, Need
from sprocket.auth.resources import ResourceKind
from sprocket.base.errors import ConfigError, UsageError
from sprocket.message.topic import REPLY_SUFFIX, TRACE
from sprocket.protocol.bodies.accounts import UserBody

_RIGHTS = frozenset({Action.PUB, Action.SUB})
_QUESTIONS = frozenset({Action.GET, Action.LIST})
_BY_NAME = (ResourceKind.TOPIC, ResourceKind.GROUP)

Networks = Sequence[IPv4Network | IPv6Network]


class PlainPolicies:
    """What one account may do.

    Args:
        cluster: the name of the broker's cluster, by which its reply topic has its name.
    """

    __slots__ = ("_account", "_defaults", "_free", "_named")

    def __init__(self, account: PlainAccount, cluster: str) -> None:
        self._account = account
        self._named = dict(_named(account))
        self._defaults: Mapping[ResourceKind, PlainPermission | None] = {
            ResourceKind.TOPIC: account.default_topic,
            ResourceKind.GROUP: account.default_group,
        }
        #: The topics to which everybody may send.
        self._free = (TRACE, f"{cluster}{REPLY_SUFFIX}")

    def judge(self, need: Need, source: str) -> Judgement:
        """Whether a request may have what it needs.

        Args:
            source: the IP address that it comes from, which does not count here.
        """
        kind, name = need.resource
        action = need.actions[0]
        if kind not in _BY_NAME:
            return self._by_admin(action)
        if kind == ResourceKind.TOPIC and name in self._free and Action.PUB in need.actions:
            return Judgement(True, None, action, "everybody may send to it")
        rights, why = self._rights(kind, name)
        if wanted := [each for each in need.actions if each in _RIGHTS]:
            return Judgement(any(each in rights for each in wanted), None, action, why)
        if not _QUESTIONS.isdisjoint(need.actions) and rights:
            return Judgement(True, None, action, why)
        return self._by_admin(action)

    def _by_admin(self, action: Action) -> Judgement:
        is_admin = self._account.is_admin
        return Judgement(is_admin, None, action, f"admin is {str(is_admin).lower()}")

    def _rights(self, kind: ResourceKind, name: str) -> tuple[frozenset[str], str]:
        """What the account may do with a topic or group, and the words that say so."""
        found = self._named.get((kind, name))
        if found is not None:
            return found.rights, f"its line says {found.at.text}"
        default = self._defaults[kind]
        word = "DENY" if default is None else default.at.text
        return (
            frozenset() if default is None else default.rights,
            f"its default{kind}Perm is {word}",
        )


def _named(account: PlainAccount) -> Iterator[tuple[tuple[ResourceKind, str], PlainPermission]]:
    """The permissions with a name; the last one for a name counts, and topics come last."""
    for each in account.groups:
        yield (ResourceKind.GROUP, each.name), each
    for each in account.topics:
        if each.name.startswith(RETRY_PREFIX):
            yield (ResourceKind.GROUP, each.name.removeprefix(RETRY_PREFIX)), each
        else:
            yield (ResourceKind.TOPIC, each.name), each


class PlainAccounts:
    """The accounts of some files. It is never changed: changed files make another one.

    Args:
        files: in the order in which they count: the first account of a name does.
        cluster: the name of the broker's cluster.

    Attributes:
        users: by name, with their keys. Administrators without permissions are super users.

    Raises:
        ConfigError: a name or a key is not one that can be used here.
    """

    def __init__(self, files: Iterable[PlainFile], cluster: str) -> None:
        self.users: dict[str, User] = {}
        self._policies: dict[str, PlainPolicies] = {}
        self._white_of: dict[str, Networks] = {}
        white: list[IPv4Network | IPv6Network] = []
        faults: list[str] = []
        for file in files:
            for _, networks in file.white:
                white += map(ip_network, networks)
            for account in file.accounts:
                try:
                    self._add(account, cluster)
                except UsageError as error:
                    faults.append(f"{file.name}, line {account.name.line}: {error}")
        self._white: Networks = tuple(white)
        if faults:
            raise ConfigError("\n".join(faults))

    def _add(self, account: PlainAccount, cluster: str) -> None:
        name = account.name.text
        if name in self.users:
            return
        is_super = account.is_admin and not (account.topics or account.groups)
        kind = UserKind.SUPER if is_super else UserKind.NORMAL
        self.users[name] = User.of_body(name, UserBody(password=account.secret_key, user_type=kind))
        self._policies[name] = PlainPolicies(account, cluster)
        if account.white is not None:
            self._white_of[name] = tuple(map(ip_network, account.white[1]))

    def policies_of(self, name: str) -> PlainPolicies:
        """What an account may do.

        Raises:
            UsageError: there is none of this name.
        """
        found = self._policies.get(name)
        if found is None:
            raise UsageError(f"there is no account {name!r}")
        return found

    def is_super(self, name: str | None) -> bool:
        """Whether an account may do everything."""
        user = self.users.get(name or "")
        return user is not None and user.is_super

    def is_white(self, source: str) -> bool:
        """Whether everything passes from an IP address."""
        return bool(self._white) and _is_in(source, self._white)

    def passes(self, name: str, source: str) -> bool:
        """Whether a request passes without a look at its signature.

        Args:
            name: of the account that it names; empty for none.
            source: the IP address that it comes from.
        """
        own = self._white_of.get(name)
        return self.is_white(source) or (own is not None and _is_in(source, own))


def _is_in(source: str, networks: Networks) -> bool:
    try:
        address = ip_address(source.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return any((mapped or address) in network for network in networks)
