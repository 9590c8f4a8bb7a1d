"""The number of a broker in its group, kept in its folder, in the files that RocketMQ uses.

`brokerIdentity` holds `cluster#broker name#number`. While a number is asked for there is
`brokerIdentity-temp`, which holds the same and a *check code* at its end: the elector gets it
together with the number, so that after a crash between the two a broker recognises its own number.
Facts: `store/ha/autoswitch/BrokerMetadata.java` and `TempBrokerMetadata.java` of RocketMQ 5.3.3.
"""

from __future__ import annotations

from typing import NamedTuple

from sprocket.base.errors import ConfigError
from sprocket.base.ports import Disk
from sprocket.election.elector import ElectionRefused

_SEPARATOR = "#"
#: The highest number: Java keeps it as a long.
_NUMBER_MAX = (1 << 63) - 1


class NumberDraft(NamedTuple):
    """A number that is being asked for, with its check code."""

    number: int
    check_code: str


class IdentityFile:
    """Both files of one broker. They are small and are written at once, when it joins.

    Args:
        disk: where they are.
        root: the folder of the broker's store.
        cluster, name: of the broker; both may contain no `#`.
    """

    def __init__(self, disk: Disk, root: str, cluster: str, name: str) -> None:
        for each in (cluster, name):
            if _SEPARATOR in each:
                raise ConfigError(
                    f"{each!r}: names of a cluster and its brokers have no {_SEPARATOR} in them "
                    "where an elector is used"
                )
        self.path = f"{root}/brokerIdentity"
        self._draft_path = f"{self.path}-temp"
        self._root = root
        self._disk = disk
        self._names = (cluster, name)

    def load(self) -> int | None:
        """The number of this broker; None if it has none yet.

        Raises:
            ElectionRefused: the file is damaged, or belongs to a broker of another name.
            OSError: it cannot be read.
        """
        return self._number(self.path, self._fields(self.path, 3))

    def save(self, number: int) -> None:
        """Keeps the number for ever, and removes the draft.

        Raises:
            OSError: it cannot be written.
        """
        self._write(self.path, str(number))
        self._disk.remove(self._draft_path)

    def load_draft(self) -> NumberDraft | None:
        """What was asked for before a crash. A damaged draft is as good as none.

        Raises:
            OSError: it cannot be read.
        """
        try:
            fields = self._fields(self._draft_path, 4)
            number = self._number(self._draft_path, fields)
        except ElectionRefused:
            return None
        return None if number is None else NumberDraft(number, fields[3])

    def save_draft(self, draft: NumberDraft) -> None:
        """Records what is about to be asked for.

        Raises:
            OSError: it cannot be written.
        """
        self._write(self._draft_path, f"{draft.number}{_SEPARATOR}{draft.check_code}")

    def _write(self, path: str, rest: str) -> None:
        content = _SEPARATOR.join((*self._names, rest)).encode()
        self._disk.make_directory(self._root)  # a new broker joins before its store is made
        self._disk.replace(path, content, backup=False)

    def _fields(self, path: str, count: int) -> list[str]:
        content = self._disk.read(path)
        if content is None:
            return []
        fields = content.decode(errors="replace").strip().split(_SEPARATOR)
        if len(fields) != count:
            raise ElectionRefused(f"{path} is damaged: it is no cluster#name#number. {_ADVICE}")
        return fields

    def _number(self, path: str, fields: list[str]) -> int | None:
        if not fields:
            return None
        if (fields[0], fields[1]) != self._names:
            raise ElectionRefused(
                f"{path} belongs to broker {fields[1]} of cluster {fields[0]}, and this is broker "
                f"{self._names[1]} of {self._names[0]}: the folder is another broker's"
            )
        text = fields[2]
        is_number = text.isascii() and text.isdigit() and len(text) <= 19
        if not is_number or not 0 < int(text) <= _NUMBER_MAX:
            raise ElectionRefused(f"{path} is damaged: {text!r} is no number. {_ADVICE}")
        return int(text)


_ADVICE = "Restore it, or remove it: the broker then gets a new number"
