"""What the shop answers."""

import json

from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from shop.models import Order, Outbox


@csrf_exempt  # an interface for programs, without cookies
@require_POST
def order(request: HttpRequest) -> JsonResponse:
    """Both or neither: the order's row, and sooner or later its message."""
    wanted = json.loads(request.body)
    with transaction.atomic():
        stored = Order.objects.create(id=wanted["id"], what=wanted["what"])
        Outbox.objects.create(topic="orders", body=json.dumps(wanted).encode(), key=stored.id)
    return JsonResponse({"id": stored.id}, status=201)
