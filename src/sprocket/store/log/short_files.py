"""Files of the commit log that have another size than its setting.

If no file has the size of the setting, the setting was changed. Otherwise a crash, or a copy that
was not finished, may have left a next file that is too short: it is made good if it has messages,
and removed if it has none.
"""

from __future__ import annotations

import logging

from sprocket.base.errors import CorruptRecord, StoreError
from sprocket.base.ports import FileBytes
from sprocket.store.log.segments import Segments, shows_other_size
from sprocket.store.log.whole import checked, next_whole

logger = logging.getLogger(__name__)


def mend_short_files(segments: Segments) -> None:
    """Makes a next file good that is too short.

    Raises:
        ConfigError: the setting was changed.
        StoreError: a file between others, or one that is too long, has another size.
        OSError: the disk failed.
    """
    for odd in list(segments.odd):
        if shows_other_size(segments.odd, has_right=bool(segments.starts)):
            segments.refuse(odd)
        is_next = odd.start == segments.limit and odd.size < segments.file_bytes
        if not is_next:
            raise StoreError(
                f"{odd.path} has {odd.size} bytes, and the other files of the log have "
                f"{segments.file_bytes}: it is cut, or belongs to another log. Restore it; or move "
                "it away, and `sprocket store verify` shows what is missing"
            )
        if _has_record(segments.peek(odd), odd.start):
            segments.lengthen(odd)
            logger.warning(
                "%s had %d of %d bytes: it is made good, and the log ends behind its last message",
                odd.path, odd.size, segments.file_bytes,
            )  # fmt: skip
        else:
            segments.drop(odd)
            logger.warning(
                "%s had %d of %d bytes and no message: it is removed",
                odd.path, odd.size, segments.file_bytes,
            )  # fmt: skip


def _has_record(file: FileBytes, start: int) -> bool:
    """Whether a whole record begins anywhere in a file whose first byte has a log offset."""
    try:
        checked(file, 0, start)
    except CorruptRecord:
        return next_whole(file, start, 0) is not None
    return True
