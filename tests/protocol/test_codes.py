from __future__ import annotations

import pytest

from sprocket.base.errors import ReplyError
from sprocket.protocol import codes
from sprocket.protocol.codes import OwnResponseCode, RequestCode, ResponseCode


def test_names_are_found_by_number() -> None:
    assert codes.request_name(310) == "SEND_MESSAGE_V2"
    assert codes.response_name(17) == "TOPIC_NOT_EXIST"


def test_an_unknown_number_is_its_own_name() -> None:
    assert codes.request_name(9999) == "9999"
    assert codes.response_name(-1) == "-1"


@pytest.mark.parametrize(
    ("number", "name"),
    [(36, "3.x"), (213, "4.0.0"), (401, "4.9.4"), (409, "4.9.8"), (479, "5.3.3"),
     (480, "5.3.4-SNAPSHOT"), (612, "higher")],
)  # fmt: skip
def test_version_numbers_are_told_as_users_know_them(number: int, name: str) -> None:
    assert codes.version_name(number) == name


def test_language_numbers_go_both_ways() -> None:
    for name, number in codes.LANGUAGE_NUMBERS.items():
        assert codes.LANGUAGE_NAMES[number] == name


def test_a_code_cut_to_16_bits_is_none_of_the_others() -> None:
    assert codes.WIDE_REQUEST_CODES[3442] == RequestCode.POP_MESSAGE
    assert not set(codes.WIDE_REQUEST_CODES) & {int(code) for code in RequestCode}


def test_errors_worth_catching_have_the_codes_of_the_table() -> None:
    for kind in ReplyError.__subclasses__():
        assert ReplyError.of(kind.code, "").code in {*ResponseCode, *OwnResponseCode}
