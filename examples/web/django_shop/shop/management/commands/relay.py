"""Sends what stands in the outbox, until Ctrl-C."""

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import transaction

from shop.models import Outbox
from sprocket import Message, SomeNotSent
from sprocket.client.blocking import Producer

BATCH = 256


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--once", action="store_true", help="end when the outbox is empty")

    def handle(self, *args: Any, **options: Any) -> None:
        with Producer("shop") as producer:
            while True:
                found = send_waiting(producer)
                if options["once"] and not found:
                    return
                if found < BATCH:
                    time.sleep(0.5)


def send_waiting(producer: Producer) -> int:
    """Sends the oldest messages of the outbox. Returns how many were sent."""
    with transaction.atomic():
        rows = list(Outbox.objects.select_for_update().order_by("id")[:BATCH])
        messages = [
            Message(
                row.topic,
                bytes(row.body),
                keys=[row.key],
                properties={"outbox-id": str(row.outbox_id)},
            )
            for row in rows
        ]
        unsent: dict[int, Exception] = {}
        try:
            producer.send_many(messages, key_of=lambda message: message.keys[0])
        except SomeNotSent as error:
            unsent.update(error.errors)
        sent = [row.pk for place, row in enumerate(rows) if place not in unsent]
        Outbox.objects.filter(pk__in=sent).delete()
    return len(sent)
