"""Reports messages that cannot be read: an error that names the place, or a warning."""

from __future__ import annotations

import logging

from sprocket.base.errors import SprocketError
from sprocket.spark.options.options import SelectionOptions

logger = logging.getLogger(__name__)


class ReadFailed(SprocketError):
    """Messages cannot be read. The text has topic, broker, queue number and offset, or the file and
    the position in it."""


def report_loss(
    options: SelectionOptions, place: object, what: str, *, instead: str = "continue without them"
) -> None:
    """Reports that messages are gone; only a warning is logged if failOnDataLoss is false.

    Args:
        options: the options of the read.
        place: the queue, or the file.
        what: a description of the loss.
        instead: what the read does if failOnDataLoss is false.

    Raises:
        ReadFailed: failOnDataLoss is true.
    """
    if options.fails_on_loss:
        allow = "Set failOnDataLoss to false (in a pipeline: --allow-loss)"
        raise ReadFailed(f"{place}: {what}. {allow} to {instead}")
    logger.warning(
        "%s: %s; failOnDataLoss is false, so the read goes on: to %s", place, what, instead
    )
