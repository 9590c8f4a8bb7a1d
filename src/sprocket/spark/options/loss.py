"""What happens where messages cannot be read: an error that says where, or a warning."""

from __future__ import annotations

import logging

from sprocket.base.errors import SprocketError
from sprocket.spark.options.options import Choice

log = logging.getLogger(__name__)


class ReadFailed(SprocketError):
    """Something cannot be read whole. The text has topic, broker, queue number and offset, or the
    file and the position in it."""


def report_loss(options: Choice, place: object, what: str) -> None:
    """Messages are gone: an error or a warning, as the user wants.

    Args:
        place: the queue, or the file.

    Raises:
        ReadFailed: failOnDataLoss is true.
    """
    if options.fails_on_loss:
        raise ReadFailed(f"{place}: {what}. Set failOnDataLoss to false to go on without them")
    log.warning("%s: %s; going on without them", place, what)
