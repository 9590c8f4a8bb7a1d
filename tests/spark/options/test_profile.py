"""A registry of schemas is the profile's where it is named so; its secrets do not travel."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from sprocket.base.errors import ConfigError
from sprocket.schemas.http_registry import RegistryAccess
from sprocket.spark.options.options import BatchOptions, StoreOptions, read_options
from sprocket.spark.options.write_options import write_options

TEXT = """
[profile.production]
nameservers = "10.0.0.1:9876"
"""


@pytest.fixture
def given(tmp_path: Path) -> dict[str, str]:
    file = tmp_path / "sprocket.toml"
    file.write_text(TEXT)
    file.chmod(0o600)
    return {"profile": "production", "configFile": str(file)}


def test_a_registry_is_the_profile_s_where_it_is_named_so(given: dict[str, str]) -> None:
    file = Path(given["configFile"])
    file.write_text(f'{TEXT}registry = "https://r"\nregistry_token = "Hunter2"\n')
    bodies = {"bodyFormat": "json", "bodySchema": "a int"}
    ours = {**given, **bodies, "schemaRegistry": "profile"}
    for options in (
        read_options({**ours, "subscribe": "orders"}, BatchOptions),
        read_options({**ours, "store": "folder", "subscribe": "orders"}, StoreOptions),
        write_options({**ours, "topic": "orders"}),
    ):
        assert b"Hunter2" not in pickle.dumps(options)
        choice = options.choice(None)
        assert choice.registry == RegistryAccess("https://r", token="Hunter2")
        assert "Hunter2" not in repr(choice)
    without = read_options({**given, **bodies, "subscribe": "orders"}, BatchOptions)
    assert without.choice(None).registry is None


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"schemaRegistry": "profile"}, "the profile has no registry"),
        ({"schemaRegistry": "profile", "schemaRegistryToken": "t"}, "not both"),
        ({"schemaRegistry": "profile", "profile": ""}, "goes with the option profile"),
        ({"store": "folder"}, "a store needs no profile but for schemaRegistry profile"),
    ],
)
def test_a_registry_of_a_profile_goes_with_it_alone(
    given: dict[str, str], more: dict[str, str], said: str
) -> None:
    both = {**given, "bodyFormat": "json", "bodySchema": "a int", "subscribe": "t", **more}
    if not both["profile"]:
        both = {"namesrvAddr": "n:1", **both}
        del both["profile"], both["configFile"]
    with pytest.raises(ConfigError, match=said):
        read_options(both, StoreOptions if "store" in both else BatchOptions)
