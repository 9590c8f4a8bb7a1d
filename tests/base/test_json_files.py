"""RocketMQ's `rmq-proxy.json` is read as its other files are."""

from __future__ import annotations

import pytest

from sprocket.base.config_files import ConfigFile, load
from sprocket.base.errors import ConfigError
from sprocket.base.json_files import as_properties, is_json
from sprocket.proxy.config import ProxyConfig

FILE = """
{
  "rocketMQClusterName": "DefaultCluster",
  "grpcServerPort": 18081,
  "namesrvAddr": "10.0.0.1:9876;10.0.0.2:9876",
  "enableTopicMessageTypeCheck": false
}
"""


def test_its_settings_are_taken_and_the_rest_is_noted() -> None:
    loaded = load([ProxyConfig], file=ConfigFile("rmq-proxy.json", FILE))
    config = loaded.of(ProxyConfig)
    assert (config.port, config.check_types) == (18081, False)
    assert config.nameservers == ("10.0.0.1:9876", "10.0.0.2:9876")
    (note,) = loaded.notes
    assert "rocketMQClusterName (line 3)" in note


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "rmq-proxy.json: not valid JSON"),
        ('{"a": }', "rmq-proxy.json: not valid JSON"),
        ('\n{"grpcServerPort": [1]}', "neither a text nor a number"),
        ('{\n"grpcServerPorts": 1}', "rmq-proxy.json:2: "),
        ('{"grpcServerPort": "many"}', "rmq-proxy.json:1: "),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load([ProxyConfig], file=ConfigFile("rmq-proxy.json", text))
    assert said in str(caught.value)


def test_values_are_texts_on_their_lines() -> None:
    assert as_properties('{"a": true, "b": null,\n "c\\\\d": "x\\ny"}') == (
        "a=true\nb=\nc\\\\d=x\\ny"
    )
    assert is_json(" \n{}")
    assert not is_json("a=1")
