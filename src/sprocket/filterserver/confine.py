"""Confines the current process for ever: it keeps what it has, and can get nothing new.

`KERNEL`: Linux on x86_64 or arm64, by seccomp: no file, socket, process, thread or signal, and no
executable memory. `LIMITS`: other systems with rlimits on memory, CPU time, size of files, number
of descriptors and processes. These limits stop an honest mistake, but not an attack.

It uses the standard library only, since it is loaded and run in an isolated interpreter.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import sys

if sys.platform != "win32":
    import resource

from sprocket.filterserver import seccomp

KERNEL = "kernel"
LIMITS = "limits"

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_MODE_FILTER = 2
#: The broker has priority over filters.
_NICE = 10


class _Program(ctypes.Structure):
    """`struct sock_fprog`."""

    _fields_ = (("count", ctypes.c_ushort), ("lines", ctypes.c_char_p))


def shut(*, memory_bytes: int, cpu_seconds: int, parent: int) -> str:
    """Confines this process.

    Args:
        memory_bytes: the largest total address space.
        cpu_seconds: the most CPU time of its life.
        parent: the process that started this one; this one ends with it.

    Returns:
        `KERNEL` or `LIMITS`: what confines it from now on.

    Raises:
        OSError: the system does not do what it should, or has nothing that confines.
    """
    if sys.platform == "win32":
        raise OSError("filters in Python need Linux or macOS")
    # The order matters. The parent may have ended before the death signal was set, so it is checked
    # afterwards. The limits come before the filter, which refuses `setrlimit` too. The last step
    # tries a forbidden call, since a kernel without seccomp must not go unnoticed.
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
    """Closes all descriptors but the two pipes, and removes all places to load code from."""
    os.closerange(2, 1024)
    sys.path[:] = []
    sys.path_hooks[:] = []
    sys.meta_path[:] = []
    sys.argv[:] = []
    os.environ.clear()
    gc.freeze()


def _limit(memory_bytes: int, cpu_seconds: int) -> None:
    if sys.platform == "win32":
        return
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
            with contextlib.suppress(ValueError, OSError):  # macOS defines some but refuses them
                resource.setrlimit(number, (most, most))


def _control(library: ctypes.CDLL, *arguments: int) -> None:
    values = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0)[1:5]]
    if library.prctl(ctypes.c_int(arguments[0]), *values):
        number = ctypes.get_errno()
        raise OSError(number, f"prctl {arguments[0]}: {os.strerror(number)}")


def _prove() -> None:
    """Checks that the kernel refuses to open a file.

    Raises:
        OSError: the file was opened.
    """
    try:
        os.close(os.open("/", os.O_RDONLY))
    except PermissionError:
        return
    raise OSError("the kernel lets a file be opened still")
