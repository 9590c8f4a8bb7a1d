"""Whether a request may pass at this broker: its guard, with the settings in force.

Most of what a request needs is in it. A few name a message by its place in the log: which topic
that is becomes known when it is read, and its endpoint asks here then.
"""

from __future__ import annotations

from collections.abc import Callable

from sprocket.auth.accounts import AccountTable
from sprocket.auth.first_users import make_first_users
from sprocket.auth.guard import Guard, GuardRules, KnownUsers
from sprocket.auth.needs import Actions, topic_needs
from sprocket.base.errors import ConfigError, NoPermission
from sprocket.base.ports import Disk
from sprocket.broker.config import BrokerConfig
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.plain_accounts import PlainAccountFiles
from sprocket.protocol.command import Command
from sprocket.protocol.signing import signer_of
from sprocket.remoting import address as addresses
from sprocket.remoting.transport import Peer


class Rights:
    """What requests may do at one broker. `open` it before it checks anything.

    Attributes:
        guard: checks requests.
        is_on: whether any request is checked. It stays until the broker is started again.
        plain: the accounts of RocketMQ 4.x's files, if these are used in the place of users.
        known: who may sign requests.
    """

    def __init__(self, accounts: AccountTable, settings: BrokerSettings, disk: Disk) -> None:
        self._table = accounts
        self._config = config = settings.config
        rules = guard_rules(config)
        self.is_on = rules.authenticates
        self.plain: PlainAccountFiles | None = None
        self.known: KnownUsers = accounts
        if config.plain_acl and config.plain_acl_home is not None:
            self.known = self.plain = PlainAccountFiles(disk, config.plain_acl_home, config.cluster)
        self.guard = Guard(
            self.known, lambda: rules, passes=None if self.plain is None else self.plain.passes
        )
        #: Hosts from which super users have asked something.
        self._trusted: set[str] = set()

    @property
    def check(self) -> Callable[[Command, Peer], str] | None:
        """Returns who signed a request, or raises NoPermission; None if nothing is checked."""
        return self._check if self.is_on else None

    def _check(self, command: Command, peer: Peer) -> str:
        host = _host(peer)
        user = self.guard.check(command, host)
        if host not in self._trusted and self.known.is_super(user):
            self._trusted.add(host)
        return user

    def may_copy(self, host: str) -> bool:
        """Whether a broker at a host may have the log: a super user has asked something from there
        since the start, as a slave with the keys of `inner_keys` does. The stream of the log has no
        signatures of its own. So may hosts from which everything passes."""
        source = addresses.bare(host)
        is_white = self.plain is not None and self.plain.is_white(source)
        return not self.is_on or is_white or source in self._trusted

    def may_have_users(self, command: Command) -> bool:
        """Whether a request may get users with their passwords: a super user has signed it."""
        is_users = self.is_on and self.plain is None
        return is_users and self.known.is_super(command.user)

    # A proxy has checked its clients' rights to the topic that they named. It asks as a super user,
    # or in the same process as nobody. A place that a client made up may be one of another topic.
    def require(
        self, command: Command, peer: Peer, topic: str, actions: Actions, *, named: str | None
    ) -> None:
        """Checks the right to the topic of a message that a request names by its place.

        Args:
            named: the topic of which the request says that the message is. Who needs no rights
                says the right one, perhaps without its namespace.

        Raises:
            NoPermission: whoever asks does not have it.
        """
        if self.plain is not None and self.plain.passes(signer_of(command), _host(peer)):
            return
        if command.user and not self.known.is_super(command.user):
            self.guard.require(command, topic_needs(topic, actions), _host(peer))
            return
        is_same = named == topic or (command.user and topic.endswith(f"%{named}"))
        if self.is_on and named and not is_same:
            raise NoPermission(f"the message is of another topic than {named}")

    def open(self) -> None:
        """Makes the super users of the settings that do not exist, or reads the accounts.

        Raises:
            ConfigError: one is not valid, or nobody could enter.
        """
        if self.plain is None:
            make_first_users(self._table, self._config.first_users(), is_on=self.is_on)
            return
        self.plain.load()
        if not self.plain.users and not any(each.white for each in self.plain.files.values()):
            raise ConfigError(f"nobody could enter: there is no account in {self.plain.main}")


def _host(peer: Peer) -> str:
    return addresses.bare(peer.address.rpartition(":")[0])


def guard_rules(config: BrokerConfig) -> GuardRules:
    """What is checked by these settings."""
    return GuardRules(
        config.is_closed,
        config.judges_rights,
        frozenset(map(int, config.unsigned_codes)),
        frozenset(map(int, config.unjudged_codes)),
        config.cluster,
    )
