"""Handles that were used to change an invisible time, and what took their place. Pure.

Such a handle has no check point any more, so that a client that uses it once more, since the reply
was lost, would make a second one beside that of its first change: the message would come twice, as
it does from Java's broker. Here the old handle stands for the newest one until its time is over.

The handles are in memory only, and so many at most that the oldest ones are forgotten. After that,
and after a start, an old handle does what it does at Java's broker.
"""

from __future__ import annotations

from itertools import islice

from sprocket.message.pop_handle import PopHandle

#: Handles that are remembered; some 500 bytes each.
HANDLES_MAX = 32_768

#: Group, topic, and what of a handle names the message: queue, start, time of the pop, offset.
_Key = tuple[str, str, int, int, int, int]


class ChangedHandles:
    """The handles."""

    def __init__(self, handles_max: int = HANDLES_MAX) -> None:
        self._handles_max = handles_max
        #: By handle, its own end and the handle that took its place; the oldest first.
        self._newer: dict[_Key, tuple[int, PopHandle]] = {}

    def __len__(self) -> int:
        return len(self._newer)

    def note(self, group: str, topic: str, old: PopHandle, new: PopHandle, *, now_ms: int) -> None:
        """A change with one handle gave another one."""
        for key, (due_ms, _) in list(islice(self._newer.items(), 2)):
            if due_ms <= now_ms:  # two for each that is added: so none stays for long
                del self._newer[key]
        if len(self._newer) >= self._handles_max:
            del self._newer[next(iter(self._newer))]
        self._newer[_key(group, topic, old)] = (old.due_ms, new)

    def newest(self, group: str, topic: str, handle: PopHandle) -> PopHandle:
        """The handle that took the place of one; itself if none did."""
        while (found := self._newer.get(_key(group, topic, handle))) is not None:
            handle = found[1]
        return handle


def _key(group: str, topic: str, handle: PopHandle) -> _Key:
    return (
        group, topic, handle.queue_number, handle.start_offset, handle.pop_ms, handle.offset
    )  # fmt: skip
