"""The generated module says what the text beside it says, and its names are no others' names."""

from __future__ import annotations

import re
from pathlib import Path

from google.protobuf import descriptor_pb2

from sprocket.proxy import messages
from sprocket.proxy.messages import rocketmq_pb2 as pb

PROTO = Path(messages.__file__).with_name("rocketmq.proto")

_TYPES = {number: name for name, number in descriptor_pb2.FieldDescriptorProto.Type.items()}


def described() -> descriptor_pb2.FileDescriptorProto:
    made = descriptor_pb2.FileDescriptorProto()
    pb.DESCRIPTOR.CopyToProto(made)
    return made


def written() -> dict[str, dict[str, tuple[int, str]]]:
    """Fields or values by message or enum, each with number and type, as the text has them."""
    text = re.sub(r"//.*", "", PROTO.read_text())
    found: dict[str, dict[str, tuple[int, str]]] = {}
    for kind, name, body in re.findall(
        r"^(message|enum) (\w+) \{(.*?)^\}", text, re.MULTILINE | re.DOTALL
    ):
        pattern = r"([\w.<>, ]+?) (\w+) = (\d+);" if kind == "message" else r"()(\w+) = (\d+);"
        entries = re.findall(pattern, body)
        found[name] = {field: (int(number), words.strip()) for words, field, number in entries}
    return found


def of_field(field: descriptor_pb2.FieldDescriptorProto, owner: str) -> str:
    """A field's type in the words of the text."""
    if field.type_name.endswith("Entry") and field.type_name.startswith(
        f".{pb.DESCRIPTOR.package}.{owner}."
    ):
        return "map<string, string>"
    kind = field.type_name.removeprefix(f".{pb.DESCRIPTOR.package}.").removeprefix(".")
    kind = kind or _TYPES[field.type].removeprefix("TYPE_").lower()
    if field.label == descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED:
        return f"repeated {kind}"
    return f"optional {kind}" if field.proto3_optional else kind


def test_the_generated_module_fits_the_text() -> None:
    file = described()
    generated: dict[str, dict[str, tuple[int, str]]] = {
        each.name: {field.name: (field.number, of_field(field, each.name)) for field in each.field}
        for each in file.message_type
    }
    for enum in file.enum_type:
        generated[enum.name] = {value.name: (value.number, "") for value in enum.value}
    assert generated == written()


def test_no_name_is_rocketmqs_own() -> None:
    # A process that has RocketMQ's generated modules too could load only one of the two otherwise.
    assert pb.DESCRIPTOR.package == "sprocket.proxy.messages"
    assert pb.DESCRIPTOR.name == "sprocket/proxy/messages/rocketmq.proto"
