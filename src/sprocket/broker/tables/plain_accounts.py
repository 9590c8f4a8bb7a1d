"""RocketMQ 4.x's files of accounts at a running broker: read at the start, and when they change.

They are `conf/plain_acl.yml` and the `.yml` and `.yaml` files in `conf/acl`, below the folder of
the setting `plain_acl_home`. A change counts when two looks have seen the same, so that a file that
is being written is not taken for a whole one. If a file is wrong then, the accounts in use stay.
Source: PlainPermissionManager and AclFileWatchService of RocketMQ 4.9.8, which looks every 5 s.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping

from sprocket.auth.accounts import User
from sprocket.auth.plain_accounts import PlainAccounts, PlainPolicies
from sprocket.auth.plain_files import FILE_BYTES_MAX, PlainFile, read_plain_file
from sprocket.base.deadline import loop_ms
from sprocket.base.errors import ConfigError, SystemFailure, UsageError
from sprocket.base.ports import Disk
from sprocket.base.troubles import Troubles

logger = logging.getLogger(__name__)

#: The pause between two looks, s.
LOOK_SECONDS = 2.0
#: Files, and folders in folders, at most.
_FILES_MAX, _DEPTH_MAX = 100, 4
_ENDINGS = (".yml", ".yaml")
#: mqadmin's own keys, which may lie in the same folder.
_TOOLS = "tools.yml"
_TROUBLE = "accounts"


class PlainAccountFiles:
    """The accounts. `load` them before they are used.

    Args:
        home: the folder that has the folder `conf`.
        cluster: the name of the broker's cluster.

    Attributes:
        files: what was read, by path, in the order in which it counts.
        main: the path of `plain_acl.yml`, into which new accounts go.
    """

    def __init__(self, disk: Disk, home: str, cluster: str) -> None:
        self._disk = disk
        self._cluster = cluster
        self._folder = f"{home.rstrip('/')}/conf"
        self.main = f"{self._folder}/plain_acl.yml"
        self.files: dict[str, PlainFile] = {}
        self._accounts = PlainAccounts((), cluster)
        self._loaded: Mapping[str, bytes] = {}
        self._troubles = Troubles(lambda: loop_ms() / 1000, logger)

    @property
    def users(self) -> Mapping[str, User]:
        """The accounts by name."""
        return self._accounts.users

    def policies_of(self, name: str) -> PlainPolicies:
        """What an account may do."""
        return self._accounts.policies_of(name)

    def is_super(self, name: str | None) -> bool:
        """Whether an account may do everything."""
        return self._accounts.is_super(name)

    def is_white(self, source: str) -> bool:
        """Whether everything passes from an IP address."""
        return self._accounts.is_white(source)

    def passes(self, name: str, source: str) -> bool:
        """Whether a request with this account's key, or with none, passes without a signature."""
        return self._accounts.passes(name, source)

    def load(self) -> None:
        """Reads the files.

        Raises:
            ConfigError: a file is wrong, cannot be read, or there are none.
            UsageError: PyYAML is not installed.
        """
        try:
            found = self._read()
        except OSError as error:
            raise ConfigError(f"plain_acl.yml cannot be read: {error}") from error
        if not found:
            raise ConfigError(
                f"there is no {self.main}, and no file of accounts in {self._folder}/acl: "
                "broker.plain_acl_home (rocketmqHome) is the folder that has the folder conf"
            )
        self._take(found)

    async def run(self) -> None:
        """Looks for changes until it is cancelled."""
        seen: Mapping[str, bytes] = self._loaded
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                found = self._read()
                if found != self._loaded and found == seen:
                    self._take(found)
                seen = found
            except (OSError, ConfigError, UsageError) as error:
                what = "accounts of plain_acl.yml that are in use stay"
                self._troubles.failed(_TROUBLE, what, error)
            else:
                if found == self._loaded:
                    self._troubles.ended(_TROUBLE, "plain_acl.yml is right again")

    def _take(self, found: Mapping[str, bytes]) -> None:
        """Replaces the accounts by those of other files.

        Raises:
            ConfigError: a file is wrong.
        """
        files = {path: read_plain_file(path, data) for path, data in found.items()}
        accounts = PlainAccounts(files.values(), self._cluster)
        if self._loaded:
            logger.info("accounts were read again from %s", ", ".join(files))
        self.files, self._accounts, self._loaded = files, accounts, found

    def save(self, path: str, data: bytes) -> None:
        """Writes a file, and uses what is in it. Only the broker's user may read it.

        Raises:
            SystemFailure: it cannot be written.
            UsageError: what all files say together cannot be used; then nothing has changed.
        """
        found = {**self._loaded, path: data}
        files = {name: read_plain_file(name, each) for name, each in found.items()}
        try:
            PlainAccounts(files.values(), self._cluster)
        except ConfigError as error:
            raise UsageError(str(error)) from error
        try:
            self._disk.replace_secret(path, data)
        except OSError as error:
            raise SystemFailure(f"cannot keep it: {error}") from error
        self._take(found)

    def _read(self) -> dict[str, bytes]:
        """The bytes of the files, in the order in which RocketMQ reads them.

        Raises:
            OSError: one cannot be read.
            ConfigError: there are too many, or one is too large.
        """
        found: dict[str, bytes] = {}
        for path in (*self._paths(f"{self._folder}/acl", 0), self.main):
            if len(found) >= _FILES_MAX:
                raise ConfigError(f"more than {_FILES_MAX} files of accounts in {self._folder}/acl")
            if (self._disk.size(path) or 0) > FILE_BYTES_MAX:
                raise ConfigError(f"{path}: a file of accounts has at most {FILE_BYTES_MAX} bytes")
            data = self._disk.read(path)
            if data is not None:
                found[path] = data
        return found

    def _paths(self, folder: str, depth: int) -> Iterator[str]:
        try:
            names = self._disk.names(folder)
        except NotADirectoryError:
            return
        for name in names:
            path = f"{folder}/{name}"
            if name.endswith(_ENDINGS):
                if name != _TOOLS:
                    yield path
            elif depth < _DEPTH_MAX:
                yield from self._paths(path, depth + 1)
