"""Shuts a process in, for good: what it has it keeps, and nothing new can be had.

`KERNEL`: Linux on x86_64 or arm64, by seccomp: no file, socket, process, thread or signal, and no
memory that holds code. `LIMITS`: other systems with rlimits: bounds on memory, CPU time, size of
files, number of descriptors and processes, which keep an honest mistake in bounds, not an attack.

The standard library only: it is loaded in an isolated interpreter, and runs there.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import resource
import signal
import sys

from sprocket.filterserver import seccomp

KERNEL = "kernel"
LIMITS = "limits"

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_MODE_FILTER = 2
#: Code waits for its turn behind the broker.
_NICE = 10


class _Program(ctypes.Structure):
    """`struct sock_fprog`."""

    _fields_ = (("count", ctypes.c_ushort), ("lines", ctypes.c_char_p))


def shut(*, memory_bytes: int, cpu_seconds: int, parent: int) -> str:
    """Shuts this process in.

    Args:
        memory_bytes: address space that it may have altogether.
        cpu_seconds: CPU time that it may use in its life.
        parent: the process that started this one, with which it ends.

    Returns:
        `KERNEL` or `LIMITS`: what holds from here on.

    Raises:
        OSError: the system does not do what it should.
    """
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    _forget()
    if sys.platform != "linux" or not seccomp.is_known(os.uname().machine):
        _limit(memory_bytes, cpu_seconds)
        return LIMITS
    library = ctypes.CDLL(None, use_errno=True)
    _control(library, _PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise OSError("the process that started this one is gone")
    _control(library, _PR_SET_DUMPABLE, 0)
    _control(library, _PR_SET_NO_NEW_PRIVS, 1)
    lines = seccomp.program(os.uname().machine)
    loaded = _Program(len(lines) // 8, lines)
    _limit(memory_bytes, cpu_seconds)
    _control(library, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(loaded))
    _prove()
    return KERNEL


def _forget() -> None:
    """Nothing but the two pipes stays open, and no place to load code from is known."""
    os.closerange(2, 1024)
    sys.path[:] = []
    sys.path_hooks[:] = []
    sys.meta_path[:] = []
    sys.argv[:] = []
    os.environ.clear()
    gc.freeze()


def _limit(memory_bytes: int, cpu_seconds: int) -> None:
    for kind, most in (
        ("RLIMIT_AS", memory_bytes),
        ("RLIMIT_CPU", cpu_seconds),
        ("RLIMIT_CORE", 0),
        ("RLIMIT_FSIZE", 0),
        ("RLIMIT_NOFILE", 2),
        ("RLIMIT_NPROC", 0),
        ("RLIMIT_MEMLOCK", 0),
        ("RLIMIT_MSGQUEUE", 0),
    ):
        number = getattr(resource, kind, None)
        if number is not None:
            with contextlib.suppress(ValueError, OSError):  # macOS knows some by name only
                resource.setrlimit(number, (most, most))


def _control(library: ctypes.CDLL, *arguments: int) -> None:
    values = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0)[1:5]]
    if library.prctl(ctypes.c_int(arguments[0]), *values):
        number = ctypes.get_errno()
        raise OSError(number, f"prctl {arguments[0]}: {os.strerror(number)}")


def _prove() -> None:
    """What must not work does not.

    Raises:
        OSError: it does.
    """
    try:
        os.close(os.open("/", os.O_RDONLY))
    except PermissionError:
        return
    raise OSError("the kernel lets a file be opened still")
