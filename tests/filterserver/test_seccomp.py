from __future__ import annotations

import struct

import pytest

from sprocket.filterserver import seccomp

ALLOWED, REFUSED, KILLED = 0x7FFF0000, 0x00050001, 0x80000000
ARCHES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
#: open, openat, socket, connect, sendmsg, clone, fork, clone3, execve, kill, tgkill, ptrace, dup,
#: prctl, setrlimit, prlimit64, unlink, rename, mount, unshare, io_uring_setup, process_vm_writev.
FORBIDDEN = {
    "x86_64": (2, 257, 41, 42, 46, 56, 57, 435, 59, 62, 234, 101, 32, 157, 160, 302, 87, 82, 165,
               272, 425, 311),
    "aarch64": (56, 198, 203, 211, 220, 435, 221, 129, 131, 117, 23, 167, 164, 261, 35, 38, 40, 97,
                425, 271),
}  # fmt: skip
READ = {"x86_64": 0, "aarch64": 63}
WRITE = {"x86_64": 1, "aarch64": 64}
MMAP = {"x86_64": 9, "aarch64": 222}
MPROTECT = {"x86_64": 10, "aarch64": 226}
machines = pytest.mark.parametrize("machine", sorted(ARCHES))


def judged(machine: str, number: int, *arguments: int, arch: int | None = None) -> int:
    """What the kernel would do: the few instructions that programs here are made of."""
    arguments = (*arguments, *[0] * (6 - len(arguments)))
    data = struct.pack("<iIQ6Q", number, arch or ARCHES[machine], 0, *arguments)
    lines = list(struct.iter_unpack("<HBBI", seccomp.program(machine)))
    place, value = 0, 0
    while True:
        code, if_so, if_not, operand = lines[place]
        place += 1
        if code == 0x20:
            (value,) = struct.unpack_from("<I", data, operand)
        elif code == 0x06:
            return int(operand)
        else:
            holds = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}
            place += if_so if holds[code] else if_not


@machines
def test_nothing_new_can_be_opened_started_or_reached(machine: str) -> None:
    assert {judged(machine, number) for number in FORBIDDEN[machine]} == {REFUSED}


@machines
def test_only_the_pipe_that_leads_here_is_read_and_only_the_other_one_written(machine: str) -> None:
    assert [judged(machine, READ[machine], fd) for fd in (0, 1, 2, 3)] == [
        ALLOWED, REFUSED, REFUSED, REFUSED,
    ]  # fmt: skip
    assert [judged(machine, WRITE[machine], fd) for fd in (0, 1, 2, 3)] == [
        REFUSED, ALLOWED, REFUSED, REFUSED,
    ]  # fmt: skip


@machines
def test_memory_holds_data_and_never_code(machine: str) -> None:
    for number in (MMAP[machine], MPROTECT[machine]):
        assert judged(machine, number, 0, 4096, 3) == ALLOWED
        assert judged(machine, number, 0, 4096, 4) == REFUSED
        assert judged(machine, number, 0, 4096, 7) == REFUSED


@machines
def test_calls_in_another_manner_are_not_let_through_by_their_numbers(machine: str) -> None:
    other = ARCHES["aarch64" if machine == "x86_64" else "x86_64"]
    assert judged(machine, READ[machine], 0, arch=other) == KILLED
    assert judged(machine, READ[machine], 0, arch=0x40000003) == KILLED  # 32 bits
    assert judged(machine, 0x40000000 | READ[machine], 0) == REFUSED


def test_jumps_of_a_program_stay_inside_it() -> None:
    for machine in ARCHES:
        lines = list(struct.iter_unpack("<HBBI", seccomp.program(machine)))
        for place, (code, if_so, if_not, _) in enumerate(lines):
            if code not in (0x20, 0x06):
                assert max(place + 1 + if_so, place + 1 + if_not) < len(lines)
    assert not seccomp.is_known("s390x")
