from __future__ import annotations

import os
from pathlib import Path

import pytest

from sprocket.base.errors import ConfigError
from sprocket.protocol.signing import Signer
from sprocket.remoting.profiles import Profile
from sprocket.remoting.tls.settings import ClientTls
from sprocket.schemas.http_registry import RegistryAccess

FILE = """
[broker]
name = "b1"

[profile.production]
nameservers = "10.0.0.1:9876;10.0.0.2:9876"
access_key = "reports"
secret_key = "Hunter2"
tls = true
tls_authorities = "ca.pem"

[profile.here]
nameservers = ["127.0.0.1:9876"]
registry = "schemas"

[profile.team]
registry = "https://registry.example"
registry_user = "reports"
registry_password = "Hunter2"
registry_authorities = "registry.pem"
"""


def file(folder: Path, text: str = FILE, mode: int = 0o600) -> str:
    path = folder / "sprocket.toml"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_a_profile_says_which_cluster_and_as_whom(tmp_path: Path) -> None:
    found = Profile("production", file(tmp_path)).read()
    assert found.nameservers == ("10.0.0.1:9876", "10.0.0.2:9876")
    assert found.signer() == Signer("reports", "Hunter2")
    assert found.tls_of_client() == ClientTls(authorities="ca.pem")
    assert "Hunter2" not in repr(found)
    plain = Profile("here", file(tmp_path)).read()
    assert (plain.signer(), plain.tls_of_client()) == (None, None)


def test_a_profile_has_a_schema_registry(tmp_path: Path) -> None:
    found = Profile("team", file(tmp_path)).read()
    access = RegistryAccess(
        "https://registry.example", "reports", "Hunter2", authorities="registry.pem"
    )
    assert found.schema_registry() == access
    assert "Hunter2" not in repr(found)
    assert Profile("here", file(tmp_path)).read().schema_registry() == Path("schemas")
    with pytest.raises(ConfigError, match="has no registry"):
        Profile("production", file(tmp_path)).read().schema_registry()
    with pytest.raises(ConfigError, match="others may read it"):
        Profile("team", file(tmp_path, mode=0o644)).read()


def test_a_changed_file_counts_at_once(tmp_path: Path) -> None:
    profile = Profile("production", file(tmp_path))
    profile.read()
    file(tmp_path, FILE.replace("Hunter2", "Hunter3"))
    assert profile.read().secret_key == "Hunter3"


def test_only_a_profile_with_secrets_must_be_private(tmp_path: Path) -> None:
    open_to_all = file(tmp_path, mode=0o644)
    assert Profile("here", open_to_all).read().nameservers == ("127.0.0.1:9876",)
    with pytest.raises(ConfigError, match="contains secrets, and others may read it"):
        Profile("production", open_to_all).read()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (FILE, r"has no table \[profile.produktion\]; did you mean 'production'"),
        ("[profile.a]\nsecret_kee = 'Hunter2'", r"toml:2: unknown setting 'profile.a.secret_kee'"),
        ("[profile.a]\nsecret_key = 5", r"toml:2: profile.secret_key takes text, not \(secret\)"),
        ("[profile.a]\nsecret_key = 'Hunter2'", "and secret_key belong together"),
        ("[profile.a]\nregistry_token = 'Hunter2'", "registry_token is given without registry"),
        ("[profile.a]\nregistry = 'r'\nregistry_password = 'Hunter2'", "without registry_user"),
        (
            "[profile.a]\nregistry = 'r'\nregistry_user = 'u'\nregistry_token = 'Hunter2'",
            "registry_user and registry_token exclude each other",
        ),
        ("[profile.a]\nnameservers = 'http://n'", "without a scheme"),
        ("[profile]\na = 5", r"'profile.a' is no table: write \[profile.NAME\]"),
        ("[profile.a\n", "not valid TOML"),
        ("namesrvAddr=n:9876", "need a file in TOML"),
    ],
)
def test_what_is_wrong_is_told_without_secrets(tmp_path: Path, text: str, said: str) -> None:
    path = file(tmp_path, text)
    if text.startswith("namesrv"):
        os.rename(path, path := str(tmp_path / "sprocket.conf"))
    with pytest.raises(ConfigError, match=said) as raised:
        Profile("produktion", path).read()
    assert "Hunter2" not in str(raised.value)


def test_the_file_is_that_of_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPROCKET_CONFIG", "some.toml")
    assert Profile.named("a") == Profile("a", "some.toml")
    assert Profile.named("a", "mine.toml") == Profile("a", "mine.toml")
    monkeypatch.delenv("SPROCKET_CONFIG")
    with pytest.raises(ConfigError, match="file of SPROCKET_CONFIG, which is not set"):
        Profile.named("a")
