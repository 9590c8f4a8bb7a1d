"""Users and keys of the settings."""

from __future__ import annotations

import logging

import pytest

from sprocket.auth.accounts import AccountTable, User
from sprocket.auth.first_users import (
    FirstUser,
    first_users_in,
    keys_form,
    make_first_users,
    signer_in,
    user_form,
)
from sprocket.base.errors import ConfigError
from sprocket.protocol.signing import Signer

USER = '{"username":"admin","password":"pass"}'
KEYS = '{"accessKey":"inner","secretKey":"hidden","securityToken":null}'


def test_the_texts_of_rocketmqs_settings_are_read() -> None:
    assert list(first_users_in(USER, KEYS)) == [
        FirstUser("admin", "pass"),
        FirstUser("inner", "hidden"),
    ]
    assert signer_in(KEYS) == Signer("inner", "hidden")
    assert not list(first_users_in(None, None))
    assert signer_in(None) is None
    assert user_form(USER) is keys_form(KEYS) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"username":"a"}', '{"accessKey":1}', "admin"])
def test_a_text_that_names_nobody_is_told_by_an_example_and_not_repeated(text: str) -> None:
    for form in (user_form, keys_form):
        assert (form(text) or "").startswith("is JSON such as")


def test_a_user_who_exists_stays_and_a_difference_is_logged_without_the_password(
    caplog: pytest.LogCaptureFixture,
) -> None:
    accounts = AccountTable()
    accounts.create(User.first("root", "old"))
    with caplog.at_level(logging.WARNING):
        make_first_users(accounts, [FirstUser("root", "old")], is_on=True)
        assert not caplog.text
        make_first_users(accounts, [FirstUser("root", "new")], is_on=True)
    assert accounts.user("root").password == "old"
    assert "root is not as the settings say" in caplog.text
    assert "new" not in caplog.text


def test_nobody_may_be_shut_out() -> None:
    make_first_users(AccountTable(), [], is_on=False)
    with pytest.raises(ConfigError, match="no super user is enabled"):
        make_first_users(AccountTable(), [], is_on=True)
    with pytest.raises(ConfigError, match="must not be blank"):
        make_first_users(AccountTable(), [FirstUser("", "x")], is_on=False)
