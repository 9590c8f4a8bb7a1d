from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from sprocket.base.errors import ConfigError
from sprocket.protocol.signing import Signer
from sprocket.remoting.tls.settings import ClientTls
from sprocket.spark.options.options import BatchOptions, StreamOptions, read_options
from sprocket.spark.options.write_options import write_options

TEXT = """
[profile.production]
nameservers = "10.0.0.1:9876"
access_key = "reports"
secret_key = "Hunter2"
tls = true
"""


@pytest.fixture
def given(tmp_path: Path) -> dict[str, str]:
    file = tmp_path / "sprocket.toml"
    file.write_text(TEXT)
    file.chmod(0o600)
    return {"profile": "production", "configFile": str(file)}


def test_a_profile_has_servers_keys_and_tls(given: dict[str, str]) -> None:
    for options in (
        read_options({**given, "subscribe": "orders"}, BatchOptions),
        read_options({**given, "subscribe": "orders"}, StreamOptions),
        write_options({**given, "topic": "orders"}),
    ):
        assert options.nameservers == ("10.0.0.1:9876",)
        assert options.signer == Signer("reports", "Hunter2")
        assert options.tls == ClientTls()


def test_options_travel_without_the_secrets_of_their_profile(given: dict[str, str]) -> None:
    options = read_options({**given, "subscribe": "orders"}, BatchOptions)
    assert options.signer is not None
    sent = pickle.dumps(options)
    assert b"Hunter2" not in sent
    Path(given["configFile"]).write_text(TEXT.replace("Hunter2", "Hunter3"))
    assert pickle.loads(sent).signer == Signer("reports", "Hunter3")


def test_name_servers_may_be_others_than_those_of_the_profile(given: dict[str, str]) -> None:
    read = {**given, "subscribe": "orders", "namesrvAddr": "proxy:9876"}
    assert read_options(read, BatchOptions).nameservers == ("proxy:9876",)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"accessKey": "me"}, "give profile or accessKey, not both"),
        ({"useTLS": "true"}, "give profile or useTLS, not both"),
        ({"profile": "productoin"}, "option profile: .* did you mean 'production'"),
        ({"configFile": "/none.toml"}, "option profile: cannot read /none.toml"),
    ],
)
def test_what_does_not_fit_a_profile_is_refused(
    given: dict[str, str], more: dict[str, str], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        read_options({**given, "subscribe": "orders", **more}, BatchOptions)


def test_a_file_without_a_profile_is_refused() -> None:
    wrong = {"namesrvAddr": "n:9876", "subscribe": "orders", "configFile": "some.toml"}
    with pytest.raises(ConfigError, match="option configFile goes with profile"):
        read_options(wrong, BatchOptions)


def test_a_profile_without_name_servers_needs_the_option(given: dict[str, str]) -> None:
    Path(given["configFile"]).write_text("[profile.production]\n")
    with pytest.raises(ConfigError, match=r"namesrvAddr is missing: .* or a profile"):
        write_options({**given, "topic": "orders"})
