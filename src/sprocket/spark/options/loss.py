"""Reports messages that cannot be read: an error that names the place, or a warning."""

from __future__ import annotations

import logging

from sprocket.base.errors import SprocketError
from sprocket.spark.options.options import SelectionOptions

logger = logging.getLogger(__name__)


class ReadFailed(SprocketError):
    """Messages cannot be read. The text has topic, broker, queue number and offset, or the file and
    the position in it."""


def report_loss(options: SelectionOptions, place: object, what: str) -> None:
    """Reports that messages are gone; only a warning is logged if failOnDataLoss is false.

    Args:
        options: the options of the read.
        place: the queue, or the file.
        what: a description of the loss.

    Raises:
        ReadFailed: failOnDataLoss is true.
    """
    if options.fails_on_loss:
        raise ReadFailed(f"{place}: {what}. Set failOnDataLoss to false to continue without them")
    logger.warning("%s: %s; continues without them", place, what)
