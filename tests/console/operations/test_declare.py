"""What is derived from the declaration of an operation."""

from __future__ import annotations

from sprocket.console.operations.declare import Declarations, OperationEnvironment
from sprocket.console.operations.values import NothingAsked, Page
from sprocket.protocol.codes import RequestCode


def test_an_operation_is_its_function_with_its_types_and_the_rights_of_its_requests() -> None:
    declared = Declarations()

    @declared.changes(
        "things.move",
        "POST /things/{thing}/move",
        codes=[RequestCode.DELETE_TOPIC_IN_BROKER, RequestCode.UPDATE_BROKER_CONFIG, -5],
        is_destructive=True,
    )
    async def move(given: OperationEnvironment, asked: NothingAsked) -> Page[str]:
        """Moves a thing.

        And more about it.
        """
        return Page(items=[])

    (made,) = declared.operations
    assert (made.method, made.path, made.in_path) == ("POST", "/things/{thing}/move", ("thing",))
    assert made.title == "Moves a thing."
    assert made.about.endswith("And more about it.")
    assert made.parameters is NothingAsked
    assert made.result == Page[str]
    assert made.rights == "topic: Delete; cluster: Update; a super user"
    assert made.is_change
    assert made.is_destructive
