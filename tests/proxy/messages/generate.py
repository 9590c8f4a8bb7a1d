"""Generates `rocketmq_pb2` from `rocketmq.proto`: `python -m tests.proxy.messages.generate`.

Needs protoc, as grpcio-tools brings it. The check for the version of the library is left out: it
would demand one at least as new as protoc, and what is generated here works with older ones.
"""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[3] / "src"
NAME = "sprocket/proxy/messages/rocketmq"

_VERSION_CHECK = re.compile(
    r"^_runtime_version\.ValidateProtobufRuntimeVersion\(.*?^\)\n", re.MULTILINE | re.DOTALL
)


def main() -> None:
    """Writes the module and its types."""
    from grpc_tools import protoc  # type: ignore[import-not-found]

    bundled = Path(protoc.__file__).parent / "_proto"  # of the library's own messages
    arguments = ["protoc", f"-I{SOURCE}", f"-I{bundled}"]
    arguments += [f"--python_out={SOURCE}", f"--pyi_out={SOURCE}"]
    if protoc.main([*arguments, f"{NAME}.proto"]):
        raise SystemExit("protoc failed")
    module = SOURCE / f"{NAME}_pb2.py"
    text = _VERSION_CHECK.sub("", module.read_text())
    text = text.replace("from google.protobuf import runtime_version as _runtime_version\n", "")
    module.write_text(text)


if __name__ == "__main__":
    main()
