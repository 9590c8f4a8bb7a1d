"""What holds for all operations."""

from __future__ import annotations

import msgspec
import pytest

from sprocket.console.operations.declare import Operation
from sprocket.console.operations.table import OPERATIONS
from sprocket.console.operations.values import Asked, ChangeAsked, ChangeReport
from tests.console.table import MARK, PAGE, table

EVERY = [pytest.param(each, id=each.name) for each in OPERATIONS.values()]


@pytest.mark.parametrize("operation", EVERY)
def test_an_operation_says_what_it_does_and_takes_only_what_it_declares(
    operation: Operation,
) -> None:
    assert operation.title.endswith((".", ":")), operation.title
    assert issubclass(operation.parameters, Asked)
    assert operation.parameters.__struct_config__.forbid_unknown_fields
    assert set(operation.in_path) <= set(operation.parameters.__struct_fields__)
    for name, schema in msgspec.json.schema(operation.result).get("$defs", {}).items():
        assert "password" not in schema.get("properties", {}), name


@pytest.mark.parametrize("operation", EVERY)
def test_what_changes_something_can_be_tried_and_what_reads_is_a_get(operation: Operation) -> None:
    assert operation.is_change == issubclass(operation.parameters, ChangeAsked)
    assert operation.is_change == (operation.method != "GET")
    assert operation.is_change == (operation.result is ChangeReport)


def test_no_two_operations_have_one_route() -> None:
    routes = [(each.method, each.path) for each in OPERATIONS.values()]
    assert len(set(routes)) == len(routes)


def test_every_subject_of_an_operator_is_there() -> None:
    subjects = {name.partition(".")[0] for name in OPERATIONS}
    assert subjects == {
        "brokers", "topics", "messages", "groups", "dead_letters", "delayed", "transactions",
        "users", "policies", "filters", "settings", "audit",
    }  # fmt: skip


def test_the_guide_has_the_table_of_all_operations() -> None:
    _, mark, shown = PAGE.read_text().partition(MARK)
    assert mark, f"{PAGE} has no table"
    assert shown.strip() == table().strip(), "python -m tests.console.table writes it anew"
