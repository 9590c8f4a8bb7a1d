"""The cluster that a pipeline writes to, if it is a second one."""

from __future__ import annotations

from pathlib import Path

import pytest

from sprocket.base.errors import UsageError
from sprocket.remoting.profiles import Profile
from sprocket.spark.pipelines.mirror import Mirror
from sprocket.spark.pipelines.parts.servers import AccessKeys, Servers
from sprocket.spark.pipelines.replay import Replay


@pytest.fixture
def there(tmp_path: Path) -> Profile:
    file = tmp_path / "sprocket.toml"
    file.write_text(
        "[profile.there]\nnameservers = 't:1;t:2'\naccess_key = 'me'\nsecret_key = 'Hunter2'\n"
    )
    file.chmod(0o600)
    return Profile("there", str(file))


def test_a_second_cluster_has_a_profile_of_its_own(there: Profile) -> None:
    here = Servers("n:1", AccessKeys("ours", "Hunter1"))
    its_options = {"profile": "there", "configFile": there.file}
    assert here.another(None, None, None, there).options() == {
        "namesrvAddr": "t:1;t:2", **its_options,
    }  # fmt: skip
    assert here.another("o:1", None, None, there).options() == {"namesrvAddr": "o:1", **its_options}
    assert here.another("o:1", None, None).keys == here.keys
    with pytest.raises(UsageError, match="a profile has both"):
        here.another("o:1", AccessKeys("me", "Hunter2"), None, there)
    with pytest.raises(UsageError, match="which target"):
        here.another(None, None, None)


def test_pipelines_write_by_a_profile(there: Profile) -> None:
    job = Mirror(nameservers="n:1", topics=("orders",), folder="m", to_profile=there)
    assert job.target.options()["profile"] == "there"
    assert job.target.nameservers == "t:1;t:2"
    replay = Replay(nameservers="n:1", topics=("orders",), to="orders", to_profile=there)
    assert replay._target == job.target
    alone = Replay(nameservers="n:1", topics=("orders",), to="orders")
    assert replay._name() != alone._name()
