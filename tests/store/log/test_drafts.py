"""What may be stored."""

from __future__ import annotations

import pytest

from sprocket.store.log.drafts import IllegalDraft, check_queue, check_sizes
from tests.store.making import a_draft


def test_names_of_rocketmq_make_folders() -> None:
    for topic in ("orders", "%RETRY%g", "%DLQ%g", "a-b_c|d", "SCHEDULE_TOPIC_XXXX", "ä" * 127):
        check_queue(topic, 0)


@pytest.mark.parametrize(
    ("body", "properties", "record", "text"),
    [
        (100, 32767, 999, None),
        (0, 0, 999, None),
        (101, 0, 999, "body has 101 bytes, at most 100"),
        (100, 32768, 999, "properties have 32768 bytes, at most 32767"),
        (100, 65536, 999, "properties have 65536 bytes"),
        (100, 0, 1000, "record has 1000 bytes"),
    ],
)
def test_what_is_too_large_is_named_with_its_limit(
    body: int, properties: int, record: int, text: str | None
) -> None:
    draft = a_draft(bytes(body), properties=bytes(properties))
    if text is None:
        check_sizes(draft, record, body_max=100, record_max=999)
        return
    with pytest.raises(IllegalDraft, match=text):
        check_sizes(draft, record, body_max=100, record_max=999)
