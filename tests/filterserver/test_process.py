"""Real processes with code that means harm. Each is started, does its worst, and is gone."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from sprocket.filterserver import confine, exchange
from sprocket.filterserver.exchange import Fault, FilterInput, Verdicts
from sprocket.filterserver.process import FilterProcess, NotConfined, ProcessLimits, ProcessLost
from tests.support import run

HAS_KERNEL = sys.platform == "linux" and os.uname().machine in ("x86_64", "aarch64")
pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not HAS_KERNEL, reason="seccomp is Linux's, on x86_64 and arm64"),
]
QUICK = ProcessLimits(memory_bytes=96 << 20, cpu_ms=200)
#: Every way to the operating system that an interpreter has, whatever names are taken away.
OS = "os = [c for c in object.__subclasses__() if c.__name__ == '_wrap_close'][0]" \
     ".__init__.__globals__['sys'].modules"  # fmt: skip


async def with_process(
    source: str, do: Callable[[FilterProcess], Awaitable[None]], bounds: ProcessLimits = QUICK
) -> None:
    process = await FilterProcess.start(bounds)
    try:
        assert process.level == confine.KERNEL
        assert await process.load("wants", source.encode()) is None
        await do(process)
    finally:
        await process.kill()


async def verdicts(process: FilterProcess, *bodies: bytes, properties: bytes = b"") -> Verdicts:
    parts = [FilterInput(n, 1, 2, 3, properties, body) for n, body in enumerate(bodies)]
    return await process.judge(exchange.batch("t", 4, parts), len(parts))


def judged(body: str, *bodies: bytes, bounds: ProcessLimits = QUICK) -> Verdicts:
    """What a function with this body makes of messages."""
    found: list[Verdicts] = []

    async def do(process: FilterProcess) -> None:
        found.append(await verdicts(process, *(bodies or (b"x",))))

    lines = "".join(f"    {line}\n" for line in body.splitlines())
    run(with_process(f"{OS}\ndef wants(message):\n{lines}", do, bounds))
    return found[0]


def fault_of(body: str) -> str:
    told = judged(body)
    assert told.wanted == []
    assert told.fault is not None
    return str(told.fault)


def lost(body: str, bounds: ProcessLimits = QUICK) -> str:
    with pytest.raises(ProcessLost) as caught:
        judged(body, bounds=bounds)
    return str(caught.value)


def test_a_filter_sees_properties_tag_keys_body_and_place() -> None:
    source = """
import json, re
from datetime import datetime, timezone
def wants(message):
    seen = (message.topic, message.queue_number, message.queue_offset, message.flag,
            message.born_ms, message.stored_ms, message.tag, message.keys,
            message.properties["amount"])
    assert seen == ("t", 4, 0, 3, 1, 2, "paid", ["k1", "k2"], "7"), seen
    datetime.strptime("2030-01-31", "%Y-%m-%d")
    return json.loads(message.body)["gift"] and bool(re.match("7", seen[-1]))
"""
    text = b"TAGS\x01paid\x02KEYS\x01k1 k2\x02amount\x017\x02"

    async def do(process: FilterProcess) -> None:
        assert await verdicts(process, b'{"gift": true}', properties=text) == Verdicts([True])
        assert await verdicts(process, b'{"gift": false}', properties=text) == Verdicts([False])
        assert process.batches == 2

    run(with_process(source, do))


def test_a_loop_is_ended_when_its_time_is_over() -> None:
    assert lost("while True: pass") == (
        "the filter was not done after 0.2 s of CPU time, and was ended"
    )


def test_a_filter_that_only_waits_is_ended_too() -> None:
    assert "PermissionError" in fault_of("import time; time.sleep(9)")
    # Reading the next question, which never comes, uses no CPU time.
    assert "waited for something" in lost("os['os'].read(0, 1)", QUICK._replace(cpu_ms=5_000))


def test_memory_is_bounded() -> None:
    assert fault_of("return bool(bytearray(1 << 30))") == "line 3, column 17: MemoryError"
    assert "MemoryError" in fault_of("x = []\nwhile True: x.append(' ' * (1 << 20))")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("os['os']._exit(3)", "exit code 3"),
        ("os['ctypes'].string_at(0)", "SIGSEGV"),
        ("os['os'].abort()", "SIG"),
        ("os['os'].close(1)", "PermissionError"),
    ],
)
def test_a_process_that_dies_says_how(body: str, words: str) -> None:
    try:
        found = fault_of(body)
    except ProcessLost as error:
        found = str(error)
    assert words in found


@pytest.mark.parametrize(
    "body",
    [
        "os['os'].fork()",
        "os['os'].posix_spawn('/bin/true', ['true'], {})",
        "os['os'].execv('/bin/true', ['true'])",
        "os['os'].open('/etc/passwd', 0)",
        "os['io'].open('/etc/passwd')",
        "os['os'].listdir('/')",
        "os['os'].stat('/')",
        "os['os'].open('/tmp/x', 65)",
        "os['os'].remove('/tmp/x')",
        "os['os'].pipe()",
        "os['os'].dup(1)",
        "os['os'].kill(os['os'].getppid(), 9)",
        "os['posix'].kill(1, 0)",
        "os['os'].memfd_create('x')",
        "os['resource'].getrlimit(os['resource'].RLIMIT_AS)",
        "os['os'].setuid(0)",
        "os['os'].write(2, b'x')",
    ],
)
def test_nothing_outside_of_it_can_be_had(body: str) -> None:
    assert "PermissionError" in fault_of(body) or "Operation not permitted" in fault_of(body)


def test_no_thread_no_socket_and_no_machine_code() -> None:
    assert "can't start new thread" in fault_of("os['_thread'].start_new_thread(print, ())")
    # Whoever gets hold of ctypes calls the kernel, which says no: -1, errno 1.
    call = (
        "c = os['ctypes'].CDLL(None, use_errno=True) if 0 else os['ctypes'].pythonapi\n"
        "c.socket.restype = os['ctypes'].c_int\n"
        "c.mmap.restype = os['ctypes'].c_long\n"
        "c.mmap.argtypes = [os['ctypes'].c_long] * 6\n"
        "return (c.socket(2, 1, 0), c.mmap(0, 4096, 7, 34, -1, 0), c.fork()) == (-1, -1, -1)"
    )
    assert judged(call) == Verdicts([True])


def test_modules_that_are_not_on_the_list_are_refused_with_the_list() -> None:
    assert "a filter may not import socket; it may: base64" in fault_of("import socket")
    assert "NameError" in fault_of("open('/etc/passwd')")


def test_printing_goes_nowhere_and_harms_nothing() -> None:
    assert judged("print('x' * 1000000)\nreturn True", b"1", b"2") == Verdicts([True, True])


@pytest.mark.parametrize(
    "written",
    ["b'hello'", "b'\\xff' * 4", "(20).to_bytes(4, 'big') + bytes(20)", "b'x' * (1 << 20)"],
)
def test_whatever_it_writes_into_its_pipe_is_no_verdict(written: str) -> None:
    body = f"n = 0\nw = {written}\nwhile n < len(w): n += os['os'].write(1, w[n:])"
    assert "wrote into its pipe" in lost(body)


def test_an_answer_that_it_forges_decides_about_its_own_messages_only() -> None:
    """It may say what it wants of its own batch, with a function as well as with a forgery."""
    body = (
        "import struct\n"
        "answer = struct.pack('>IcIii', 2, b'V', 1, -1, -1) + b'\\x01'\n"
        "os['os'].write(1, struct.pack('>I', len(answer)) + answer)\n"
        "return False"
    )
    assert judged(body) == Verdicts([True])


def test_what_it_says_must_be_true_or_false() -> None:
    assert fault_of("pass") == "said NoneType, not True or False"
    assert fault_of("return 1") == "said int, not True or False"


def test_an_error_names_its_line_and_column_and_the_messages_before_it_count() -> None:
    told = judged("if message.body == b'3':\n    return 1 / 0 > 1\nreturn True", b"1", b"2", b"3")
    assert told == Verdicts([True, True], Fault(4, 16, "ZeroDivisionError: division by zero"))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("return wants(message)", "RecursionError"),
        ("class E(Exception):\n    def __str__(self): raise ValueError\nraise E", "E"),
        ("raise Exception('x' * (1 << 22))", "Exception: xxx"),
    ],
)
def test_whatever_it_raises_is_told(body: str, words: str) -> None:
    assert words in fault_of(body)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def wants(message:", "line 1, column 10: '(' was never closed"),
        ("x = 1", "the source defines no function 'wants'"),
        ("import os", "line 1, column 1: ImportError"),
        ("def wants(message): return True\n1 / 0", "line 2, column 1: ZeroDivisionError"),
        ("a" + ".a" * 50_000, "RecursionError"),
        ("(" * 5_000, "too many nested parentheses"),
        ("x = '\\N{", "line 1"),
        ("\x00", "null bytes"),
    ],
)
def test_a_mistake_in_the_source_is_told_when_it_is_loaded(source: str, words: str) -> None:
    async def main() -> None:
        process = await FilterProcess.start(QUICK)
        try:
            assert words in str(await process.load("wants", source.encode()))
        finally:
            await process.kill()

    run(main())


@pytest.mark.parametrize("source", ["while True: pass", "x = 10 ** 10 ** 8"])
def test_a_source_that_does_not_come_to_its_end_is_ended(source: str) -> None:
    async def main() -> None:
        process = await FilterProcess.start(QUICK)
        with pytest.raises(ProcessLost, match="was ended"):
            await process.load("wants", source.encode())

    run(main())


def test_it_inherits_nothing_of_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a descriptor, nor a variable, nor a place to load code from."""
    monkeypatch.setenv("SECRET", "s3cret")
    left, right = socket.socketpair()
    left.set_inheritable(True)
    body = (
        "import math\n"
        f"mine = dict(os['os'].environ), os['sys'].path, os['sys'].argv, os['sys'].meta_path\n"
        f"try: os['os'].read({left.fileno()}, 1)\n"
        "except OSError as error: return not any(mine) and error.errno in (1, 9)"
    )
    assert judged(body) == Verdicts([True])
    left.close()
    right.close()


def test_a_process_that_is_killed_is_missed_at_once() -> None:
    async def do(process: FilterProcess) -> None:
        asyncio.get_running_loop().call_later(0.05, process._child.kill)
        with pytest.raises(ProcessLost, match="SIGKILL"):
            await verdicts(process, b"x")

    bounds = QUICK._replace(cpu_ms=60_000)
    run(with_process("def wants(message):\n    while True: pass", do, bounds))


def test_no_process_is_left_behind() -> None:
    numbers: list[int] = []

    async def do(process: FilterProcess) -> None:
        numbers.append(process._child.pid)

    run(with_process("def wants(message): return True", do))
    assert not Path(f"/proc/{numbers[0]}").exists()


def test_the_loop_goes_on_while_a_filter_is_at_work() -> None:
    async def do(process: FilterProcess) -> None:
        longest, last = 0.0, asyncio.get_running_loop().time()
        asking = asyncio.ensure_future(verdicts(process, b"x"))
        turns = 0
        while not asking.done():
            await asyncio.sleep(0.001)
            now = asyncio.get_running_loop().time()
            longest, last, turns = max(longest, now - last), now, turns + 1
        with pytest.raises(ProcessLost):
            await asking
        assert turns > 5

    run(with_process("def wants(message):\n    while True: pass", do))


def test_where_the_kernel_does_not_help_nothing_runs_unless_limits_are_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from sprocket.filterserver import process as module

    monkeypatch.setattr(module, "_START", module._START.replace(
        "import main; ", "import main; from sprocket.filterserver import seccomp; "
        "seccomp._MACHINES.clear(); ",
    ))  # fmt: skip

    async def main() -> None:
        with pytest.raises(NotConfined, match="filter_isolation=limits"):
            await FilterProcess.start(QUICK)
        process = await FilterProcess.start(QUICK._replace(must_be_confined=False))
        assert process.level == confine.LIMITS
        assert await process.load("wants", b"def wants(message): return True") is None
        assert await verdicts(process, b"x") == Verdicts([True])
        await process.kill()

    run(main())
