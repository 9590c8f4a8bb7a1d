"""Keys of a server as RocketMQ writes them."""

import pytest

from sprocket.auth.inner_keys import keys_fault, signer_with


def test_the_keys_sign() -> None:
    text = '{"accessKey":"inner","secretKey":"inner\'s"}'
    assert keys_fault(text) is None
    signer = signer_with(text)
    assert signer is not None
    assert (signer.access_key, signer.secret_key) == ("inner", "inner's")
    assert signer_with(None) is signer_with("") is None


@pytest.mark.parametrize(
    "text", ["", "inner", "[]", '{"accessKey":"inner"}', '{"accessKey":"","secretKey":"x"}']
)
def test_other_texts_are_refused(text: str) -> None:
    assert keys_fault(text) is not None
