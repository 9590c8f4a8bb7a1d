"""An order, and the outbox: messages that are sent once their transaction is committed."""

import uuid

from django.db import models


class Order(models.Model):
    id = models.TextField(primary_key=True)
    what = models.TextField()


class Outbox(models.Model):
    topic = models.TextField()
    body = models.BinaryField()
    key = models.TextField()
    outbox_id = models.UUIDField(default=uuid.uuid4)
