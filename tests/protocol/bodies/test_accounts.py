"""Bodies about users, as RocketMQ's mqadmin sends them."""

from __future__ import annotations

import pytest

from sprocket.base.errors import RemoteProtocolError
from sprocket.protocol.bodies.accounts import AclBody, UserBody


def test_a_user_is_read_as_java_writes_it() -> None:
    body = UserBody.of_request(b'{"password":"p","userType":"Normal","username":"ann"}')
    assert body == UserBody(username="ann", password="p", user_type="Normal")


def test_what_is_not_set_is_not_written() -> None:
    assert UserBody(username="ann", user_status="enable").encode() == (
        b'{"userStatus":"enable","username":"ann"}'
    )


def test_policies_are_read_as_java_writes_them() -> None:
    text = (
        b'{"policies":[{"entries":[{"actions":["Pub","Sub"],"decision":"Allow",'
        b'"resource":"Topic:a"}],"policyType":"Custom"}],"subject":"User:ann"}'
    )
    body = AclBody.of_request(text)
    assert body.policies[0].entries[0].actions == ["Pub", "Sub"]
    assert body.encode() == text


@pytest.mark.parametrize("text", [b"", b"[]", b'{"policies":5}', b'{"policies":[{"entries":[5]}]}'])
def test_another_form_is_refused(text: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        AclBody.of_request(text)
