"""`sprocket api` and `sprocket mcp`, as processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="the API needs the extra mcp")

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from sprocket import Standalone
from tests.cli.parts import running_node, sprocket
from tests.support import run

pytestmark = pytest.mark.process


def test_an_assistant_starts_the_command_and_uses_its_tools(tmp_path: Path) -> None:
    async def main() -> None:
        async with Standalone(store=str(tmp_path)) as node:
            words = ["-m", "sprocket", "mcp", "--nameserver", node.nameserver_address]
            for more, count in (([], 0), (["--allow-changes"], 1)):
                server = StdioServerParameters(
                    command=sys.executable, args=[*words, *more], env={**os.environ}
                )
                async with Client(stdio_client(server)) as client:
                    done = await client.call_tool("topics_create", {"topic": "orders"})
                    assert done.is_error == (not more)
                    listed = await client.call_tool("topics_list", {})
                    assert listed.structured_content is not None
                    assert listed.structured_content["total"] == count

    run(main())


def test_scripts_ask_over_http_until_the_server_is_told_to_stop(tmp_path: Path) -> None:
    with running_node(str(tmp_path)) as nameserver:
        process = subprocess.Popen(
            [sys.executable, "-m", "sprocket", "api", "--port", "0", "--nameserver", nameserver],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            ready = process.stdout.readline()
            assert "changes off" in ready
            url = ready.split()[4].rstrip(",")
            with urllib.request.urlopen(f"{url}v1/brokers") as answer:
                assert json.load(answer)["items"][0]["broker"] == "broker-a"
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def test_a_server_that_strangers_could_use_does_not_start(tmp_path: Path) -> None:
    outcome = sprocket("api", "--host", "0.0.0.0")
    assert outcome.code == 2
    assert "--callers" in outcome.err
    callers = tmp_path / "callers.toml"
    callers.write_text('[[caller]]\nname = "a"\ntoken = "secret-but-readable-by-others"\n')
    callers.chmod(0o644)
    outcome = sprocket("api", "--callers", str(callers))
    assert outcome.code == 2
    assert "chmod 600" in outcome.err
    assert "secret-but" not in outcome.err
