"""A list of allowed system calls as a program for the kernel's filter (seccomp). Pure.

The kernel refuses with EPERM all calls but those that a Python process needs to work with what it
has: memory that is not executable, one pipe to read, one to write, the clock, its own end. It can
make no file, socket or process. An unlisted call is impossible, whatever code runs.

Source: seccomp(2), struct seccomp_data and classic BPF of Linux; numbers of syscalls from its
tables of x86_64 and of arm64. It uses the standard library only, since it is loaded in an isolated
interpreter.
"""

from __future__ import annotations

import struct

#: The descriptors that may be read and written.
READS, WRITES = 0, 1

_ALLOW = 0x7FFF0000
_REFUSE = 0x00050000 | 1  # with EPERM
_KILL = 0x80000000
_LOAD, _EQUAL, _AT_LEAST, _HAS_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16
_PROT_EXEC = 4
#: From this number on, calls use another interface (x32), which x86_64 has too.
_X32 = 0x40000000

#: By the machine's name in `os.uname`: the kernel's number for it, and the numbers of its calls.
_MACHINES: dict[str, tuple[int, dict[str, int]]] = {
    "x86_64": (0xC000003E, {
        "read": 0, "write": 1, "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12,
        "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "sched_yield": 24,
        "mremap": 25, "madvise": 28, "getpid": 39, "exit": 60, "gettimeofday": 96,
        "sigaltstack": 131, "gettid": 186, "futex": 202, "restart_syscall": 219,
        "clock_gettime": 228, "clock_getres": 229, "exit_group": 231, "getrandom": 318,
    }),
    "aarch64": (0xC00000B7, {
        "read": 63, "write": 64, "mmap": 222, "mprotect": 226, "munmap": 215, "brk": 214,
        "rt_sigaction": 134, "rt_sigprocmask": 135, "rt_sigreturn": 139, "sched_yield": 124,
        "mremap": 216, "madvise": 233, "getpid": 172, "exit": 93, "gettimeofday": 169,
        "sigaltstack": 132, "gettid": 178, "futex": 98, "restart_syscall": 128,
        "clock_gettime": 113, "clock_getres": 114, "exit_group": 94, "getrandom": 278,
    }),
}  # fmt: skip
#: Calls that are allowed with one descriptor only, and calls that must not ask for executable
#: memory, with the place of the argument that would.
_ONE_DESCRIPTOR = {"read": READS, "write": WRITES}
_NO_CODE = {"mmap": 2, "mprotect": 2}


def is_known(machine: str) -> bool:
    """Whether there is a program for a type of machine."""
    return machine in _MACHINES


def program(machine: str) -> bytes:
    """The program: an array of `struct sock_filter`.

    Raises:
        KeyError: the type of machine is unknown.
    """
    # The architecture is checked first, since the same number is another call on another one. Then
    # each allowed call is compared in turn, and the last line refuses all others: a call that is
    # new in a later kernel is forbidden without a change here.
    arch, calls = _MACHINES[machine]
    lines = [
        _line(_LOAD, _ARCH_AT),
        _line(_EQUAL, arch, 1, 0),
        _line(_RETURN, _KILL),
        _line(_LOAD, _NUMBER_AT),
        _line(_AT_LEAST, _X32, 0, 1),
        _line(_RETURN, _REFUSE),
    ]
    for name, number in calls.items():
        lines += _rule(name, number)
    lines.append(_line(_RETURN, _REFUSE))
    return b"".join(lines)


def _rule(name: str, number: int) -> list[bytes]:
    # Jumps in classic BPF count lines forward: if the number differs, skip the whole body.
    if name in _ONE_DESCRIPTOR:
        test = [_line(_LOAD, _argument(0)), _line(_EQUAL, _ONE_DESCRIPTOR[name], 0, 1)]
    elif name in _NO_CODE:
        test = [_line(_LOAD, _argument(_NO_CODE[name])), _line(_HAS_BIT, _PROT_EXEC, 1, 0)]
    else:
        test = []
    tail = [_line(_RETURN, _REFUSE)] if test else []
    body = [*test, _line(_RETURN, _ALLOW), *tail]
    return [_line(_EQUAL, number, 0, len(body)), *body]


def _argument(place: int) -> int:
    """The offset of an argument's lower half; it comes first on both types of machine."""
    return _ARGUMENTS_AT + 8 * place


def _line(code: int, value: int, if_so: int = 0, if_not: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_so, if_not, value)
