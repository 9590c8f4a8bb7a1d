"""Which brokers a folder has, remembered in it: `container/brokers.json`.

A start with another number of brokers is refused: consumers would miss messages of a broker that is
not started, and keys of ordered messages would move to other queues. `resizing` changes it.

    {"version": 1, "brokers": [{"number": 0, "name": "broker-a-0", "folder": "0"}, …],
     "added": [{"config": "/etc/b.conf", "name": "b", "cluster": "c", "id": 0}]}
"""

from __future__ import annotations

import msgspec

from sprocket.base.errors import CorruptRecord, UsageError
from sprocket.base.ports import Disk

#: The folder in that of a container with what concerns all of its brokers.
FOLDER = "container"
#: The folder of a broker that was there before it became one of several.
ROOT = "."
_FILE = f"{FOLDER}/brokers.json"
_USERS = "config/accounts.json"
_VERSION = 1


class BrokerEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A broker of the number that was asked for.

    Attributes:
        folder: in that of the container; `ROOT` for that itself.
        leaves: whether it takes no messages any more, since there are to be fewer brokers.
        drained: whether one that leaves has nothing left for anybody.
    """

    number: int
    name: str
    folder: str
    leaves: bool = False
    drained: bool = False


class AddedBroker(msgspec.Struct, frozen=True, kw_only=True):
    """A broker that was added by a configuration file while the container ran.

    Attributes:
        config: the path of that file.
        id: 0 for a master.
    """

    config: str
    name: str
    cluster: str
    id: int


class ContainerState(msgspec.Struct, frozen=True, kw_only=True):
    """The brokers of a container."""

    brokers: tuple[BrokerEntry, ...]
    added: tuple[AddedBroker, ...] = ()
    version: int = _VERSION

    @property
    def count(self) -> int:
        """How many brokers were asked for."""
        return sum(not each.leaves for each in self.brokers)


def new_state(name: str, count: int) -> ContainerState:
    """The brokers of a new container."""
    return ContainerState(
        brokers=tuple(
            BrokerEntry(number=number, name=f"{name}-{number}", folder=str(number))
            for number in range(count)
        )
    )


class ContainerFile:
    """The file of a container.

    Args:
        root: folder of the container.
    """

    def __init__(self, disk: Disk, root: str) -> None:
        self._disk = disk
        self.root = root

    @property
    def folder(self) -> str:
        """The folder that its processes lock."""
        return f"{self.root}/{FOLDER}"

    def load(self) -> ContainerState | None:
        """The brokers; None if the folder is none of a container.

        Raises:
            CorruptRecord: the file has another form.
            OSError: it cannot be read.
        """
        content = self._disk.read(f"{self.root}/{_FILE}")
        if content is None:
            return None
        try:
            state = msgspec.json.decode(content, type=ContainerState)
        except msgspec.MsgspecError as error:
            raise CorruptRecord(f"{self.root}/{_FILE} names no brokers: {error}") from error
        if state.version != _VERSION:
            raise CorruptRecord(
                f"{self.root}/{_FILE} was written by another version ({state.version})"
            )
        return state

    def save(self, state: ContainerState) -> None:
        """Writes the file anew.

        Raises:
            OSError: it cannot be written.
        """
        self._disk.make_directory(self.folder)
        self._disk.replace(f"{self.root}/{_FILE}", msgspec.json.format(msgspec.json.encode(state)))


def has_store(disk: Disk, folder: str) -> bool:
    """Whether a folder is one of a single broker: it has a log, or tables."""
    return not {"commitlog", "config"}.isdisjoint(disk.names(folder))


def users_in(disk: Disk, folder: str) -> bytes | None:
    """The file of the users of a broker, by the folder of its store; None if there is none."""
    return disk.read(f"{folder}/{_USERS}")


def share_users(disk: Disk, users: bytes, folder: str) -> None:
    """Gives a broker that does not run the users and their rights, unless it has them already."""
    if users != users_in(disk, folder):
        disk.make_directory(f"{folder}/config")
        disk.replace_secret(f"{folder}/{_USERS}", users)


def brokers_at_start(
    file: ContainerFile, disk: Disk, *, name: str, count: int | None
) -> ContainerState:
    """The brokers that a start has: those that are remembered, or new ones.

    Args:
        name: that new brokers' names begin with.
        count: how many there are to be; None for as many as are remembered.

    Raises:
        UsageError: there are to be more or fewer than there are, or the folder has the messages
            of a single broker.
        CorruptRecord, OSError: see `ContainerFile`.
    """
    state = file.load()
    hint = "shows what a change does, and with --yes makes it"
    if state is None:
        count = count or 1
        if has_store(disk, file.root):
            raise UsageError(
                f"{file.root} has the messages of a single broker, which {count} processes would "
                f"not find: sprocket container resize --store {file.root} --processes {count} "
                f"{hint}"
            )
        return new_state(name, count)
    if count not in (None, state.count):
        raise UsageError(
            f"{file.root} has {brokers(state.count)}, and {brokers(count)} are asked for: sprocket "
            f"container resize --store {file.root} --processes {count} {hint}"
        )
    if not all(each.name in (name, f"{name}-{each.number}") for each in state.brokers):
        raise UsageError(
            f"the brokers in {file.root} are called {state.brokers[0].name} and so on, which "
            f"clients know; broker.name (brokerName) is now {name}: set it as it was"
        )
    return state


def check_is_single(file: ContainerFile) -> None:
    """Checks that a single broker may use a folder.

    Raises:
        UsageError: it is one of a container.
        CorruptRecord, OSError: see `ContainerFile`.
    """
    state = file.load()
    if state is not None:
        raise UsageError(
            f"{file.root} has {brokers(state.count)}, each with messages: start them with "
            f"--processes {state.count}, or --processes auto"
        )


def brokers(count: int | None) -> str:
    """A number of brokers, in words."""
    return "1 broker" if count == 1 else f"{count} brokers"
