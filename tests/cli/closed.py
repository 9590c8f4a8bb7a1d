"""Commands of a super user at a closed node."""

from __future__ import annotations

from collections.abc import Callable

from tests.cli.parts import Outcome, sprocket

#: The node's first user.
ROOT = '{"username":"root","password":"root\'s"}'
#: What the node signs with itself.
INNER = '{"accessKey":"inner","secretKey":"inner\'s"}'
KEYS = {"SPROCKET_CLIENT_ACCESS_KEY": "root", "SPROCKET_CLIENT_SECRET_KEY": "root's"}

Command = Callable[..., Outcome]


def commands_at(address: str) -> Command:
    """Runs commands at a name server, with the super user's keys unless others are given."""

    def run(*arguments: str, standard_input: bytes = b"", **environment: str) -> Outcome:
        return sprocket(
            *arguments, "--nameserver", address, standard_input=standard_input,
            **{**KEYS, **environment},
        )  # fmt: skip

    return run
