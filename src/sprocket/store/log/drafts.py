"""Checks of drafts: names that can be folders, bodies and properties that fit their fields."""

from __future__ import annotations

from sprocket.base.errors import StoreError
from sprocket.message.properties import PROPERTIES_BYTES_MAX
from sprocket.message.record import Draft

#: Longer folder names are refused by most file systems.
FOLDER_BYTES_MAX = 255

_NUMBER_BITS = (
    ("queue_number", 32),
    ("flag", 32),
    ("sys_flag", 32),
    ("born_ms", 64),
    ("reconsume_times", 32),
    ("prepared_offset", 64),
    ("tag_code", 64),
)

_NO_FOLDERS = ("", ".", "..")
_SEPARATORS = "/\\\0"


class IllegalDraft(StoreError):
    """A message that cannot be stored as it is; the text gives the reason."""


def check_queue(topic: str, number: int) -> None:
    """Refuses a queue whose name cannot be a folder.

    Raises:
        IllegalDraft: with the reason.
    """
    if number < 0 or topic in _NO_FOLDERS or any(sign in topic for sign in _SEPARATORS):
        raise IllegalDraft(f"no queue can be called {topic[:80]!r} {number}")
    if len(topic.encode("utf-8", "surrogatepass")) > FOLDER_BYTES_MAX:
        raise IllegalDraft(f"a topic's name has at most {FOLDER_BYTES_MAX} bytes")


def check_sizes(draft: Draft, record_bytes: int, *, body_max: int, record_max: int) -> None:
    """Refuses a message that is too large.

    Raises:
        IllegalDraft: names what is too large, and the limit.
    """
    body_bytes, properties_bytes = len(draft.body), len(draft.properties)
    if properties_bytes > PROPERTIES_BYTES_MAX:
        raise IllegalDraft(
            f"the properties have {properties_bytes} bytes, at most {PROPERTIES_BYTES_MAX} fit"
        )
    if body_bytes > body_max:
        raise IllegalDraft(f"the body has {body_bytes} bytes, at most {body_max} are allowed")
    if record_bytes > record_max:
        raise IllegalDraft(
            f"the record has {record_bytes} bytes, a file of the log holds {record_max} at most"
        )


def check_numbers(draft: Draft) -> None:
    """Refuses a message with a number that does not fit into its field of the record.

    Raises:
        IllegalDraft: names the field.
    """
    for name, bits in _NUMBER_BITS:
        if not -(1 << bits - 1) <= getattr(draft, name) < 1 << bits - 1:
            raise IllegalDraft(f"{name} does not fit into {bits} bits: {getattr(draft, name)}")
