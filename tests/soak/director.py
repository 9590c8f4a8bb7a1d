"""Starts the processes of a soak, makes faults, and reads what the processes wrote."""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

from tests.soak.judge import Judge

CONSUMERS, BROKERS, PRODUCERS = 4, 2, 2
#: Seconds between two faults: at least, at most.
_PAUSE = (1.5, 6.0)
#: How long processes stand still or are away, in seconds.
_STOPPED = (0.5, 3.0, 12.0, 40.0)
_AWAY = (0.2, 6.0)
_MEMORY_SECONDS = 5.0


@dataclass
class Actor:
    """A place where one process after the other does the same."""

    role: str
    name: str
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0
    #: When it is started again, or goes on, on the monotonic clock.
    back_at: float | None = None
    is_stopped: bool = False

    @property
    def full_name(self) -> str:
        """The name of the process that runs now, or ran last."""
        return f"{self.name}_{self.starts}"


class Director:
    """All processes.

    Args:
        folder: for stores and logs.
        rate: messages a second of each producer.
        flush: the brokers' way to flush.

    Attributes:
        faults: how many there were, by kind.
        last_fault: for the display.
    """

    def __init__(self, folder: Path, *, rate: float, flush: str) -> None:
        self.folder = folder
        self.judge = Judge()
        self.faults: Counter[str] = Counter()
        self.last_fault = "begins"
        self._rate, self._flush = rate, flush
        self._ports = {name: _free_port() for name in ("nameserver", "broker-0", "broker-1")}
        self._actors = [Actor("nameserver", "nameserver")]
        self._actors += [Actor("broker", f"broker-{number}") for number in range(BROKERS)]
        self._actors += [Actor("consumer", f"consumer-{number}") for number in range(CONSUMERS)]
        self._actors += [Actor("producer", f"producer-{number}") for number in range(PRODUCERS)]
        self._read: dict[Path, int] = defaultdict(int)
        self._memory: dict[str, list[float]] = defaultdict(list)
        self._memory_at = self._next_fault = 0.0

    def begin(self) -> None:
        """Starts everything, servers first."""
        for actor in self._actors:
            self._start(actor)
            if actor.role in ("nameserver", "broker"):
                self._await_port(actor)

    def settle(self, seconds: float) -> None:
        """Waits until messages are consumed in both groups.

        Raises:
            TimeoutError: they are not, after so many seconds.
        """
        give_up = time.monotonic() + seconds
        while not all(consumed for _, _, consumed in self.judge.counts.values()):
            if time.monotonic() > give_up:
                raise TimeoutError(f"nothing is consumed; look at the logs in {self.folder}")
            time.sleep(0.2)
            self.look()

    @property
    def is_done(self) -> bool:
        """Whether all that was acknowledged is consumed."""
        return self.judge.is_done

    def step(self, dice: random.Random) -> None:
        """Brings back who is due, makes a fault if it is time, and looks."""
        now = time.monotonic()
        for actor in self._actors:
            if actor.back_at is not None and now >= actor.back_at:
                self._bring_back(actor)
        if now >= self._next_fault:
            self._fault(dice, now)
            self._next_fault = now + dice.uniform(*_PAUSE)
        self.look()

    def clear_up(self) -> None:
        """Brings everybody back."""
        self.last_fault = "the weather is fair"
        for actor in self._actors:
            if actor.back_at is not None:
                self._bring_back(actor)

    def stop_producers(self) -> None:
        """Producers end in order, and know what became of all they sent."""
        for actor in self._actors:
            if actor.role == "producer" and actor.process is not None:
                actor.process.terminate()

    def look(self) -> None:
        """Reads new lines, and how much memory processes take."""
        for path in sorted(self.folder.glob("*.log")):
            with path.open("rb") as file:
                file.seek(self._read[path])
                content = file.read()
            whole = content[: content.rfind(b"\n") + 1]
            self._read[path] += len(whole)
            self.judge.read(whole.decode().splitlines(keepends=True))
        now = time.monotonic()
        if now >= self._memory_at:
            self._memory_at = now + _MEMORY_SECONDS
            for actor in self._actors:
                size = _resident_mib(actor.process)
                if size is not None:
                    self._memory[actor.full_name].append(size)

    def memory(self) -> dict[str, tuple[float, float, float]]:
        """MiB at first, at most and in the end: of each place, the process that lived longest."""
        found = {}
        for actor in self._actors:
            names = [f"{actor.name}_{number}" for number in range(1, actor.starts + 1)]
            name = max(names, key=lambda name: len(self._memory[name]))
            if sizes := self._memory[name]:
                found[name] = (round(sizes[0], 1), round(max(sizes), 1), round(sizes[-1], 1))
        return found

    def end(self) -> None:
        """Ends all processes: consumers and producers in order, then servers."""
        for roles in (("consumer", "producer"), ("broker",), ("nameserver",)):
            mine = [a for a in self._actors if a.role in roles and a.process is not None]
            for actor in mine:
                assert actor.process is not None
                actor.process.send_signal(signal.SIGCONT)
                actor.process.terminate()
            for actor in mine:
                assert actor.process is not None
                try:
                    actor.process.wait(30)
                except subprocess.TimeoutExpired:
                    actor.process.kill()
                    actor.process.wait()
                actor.process = None

    # Faults.

    def _fault(self, dice: random.Random, now: float) -> None:
        running = [
            a for a in self._actors if a.role in ("consumer", "broker") and a.back_at is None
        ]
        consumers = [actor for actor in running if actor.role == "consumer"]
        brokers = [actor for actor in running if actor.role == "broker"]
        if len(consumers) <= 1 or len(brokers) < BROKERS:
            return
        actor = dice.choice(consumers + brokers)
        assert actor.process is not None
        kind = dice.choice(("kill", "kill", "stop", "restart"))
        self.faults[f"{kind} {actor.role}"] += 1
        self.last_fault = f"{kind} {actor.full_name}"
        if kind == "stop":
            seconds = dice.choice(_STOPPED if actor.role == "consumer" else _STOPPED[:3])
            actor.process.send_signal(signal.SIGSTOP)
            actor.is_stopped = True
            self.judge.gone(actor.full_name, time.monotonic(), is_killed=False)
            actor.back_at = now + seconds
            return
        if kind == "kill":
            actor.process.kill()
            actor.process.wait()
            self.judge.gone(actor.full_name, time.monotonic(), is_killed=True)
        else:
            actor.process.terminate()
        actor.back_at = now + dice.uniform(*_AWAY)

    def _bring_back(self, actor: Actor) -> None:
        assert actor.process is not None
        actor.back_at = None
        if actor.is_stopped:
            actor.is_stopped = False
            actor.process.send_signal(signal.SIGCONT)
            return
        try:
            actor.process.wait(30)
        except subprocess.TimeoutExpired:
            self.faults[f"{actor.role} did not end in order"] += 1
            actor.process.kill()
            actor.process.wait()
            self.judge.gone(actor.full_name, time.monotonic(), is_killed=True)
        self._start(actor)

    # Processes.

    def _start(self, actor: Actor) -> None:
        actor.starts += 1
        servers = f"127.0.0.1:{self._ports['nameserver']}"
        log = str(self.folder / f"{actor.full_name}.log")
        words = {
            "nameserver": lambda: [str(self._ports["nameserver"])],
            "broker": lambda: [
                *(actor.name, str(self._ports[actor.name]), servers),
                *(str(self.folder / actor.name), self._flush),
            ],
            "consumer": lambda: [actor.full_name, servers, log],
            "producer": lambda: [actor.full_name, servers, log, str(self._rate)],
        }[actor.role]()
        command = [sys.executable, "-m", "tests.soak.role", actor.role, *words]
        with (self.folder / f"{actor.full_name}.err").open("wb") as errors:
            actor.process = subprocess.Popen(command, stdout=errors, stderr=errors)

    def _await_port(self, actor: Actor) -> None:
        give_up = time.monotonic() + 30
        while time.monotonic() < give_up:
            try:
                with socket.create_connection(("127.0.0.1", self._ports[actor.name]), 1):
                    return
            except OSError:
                time.sleep(0.1)
        raise TimeoutError(f"{actor.name} does not listen; look at the logs in {self.folder}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _resident_mib(process: subprocess.Popen[bytes] | None) -> float | None:
    """Memory of a process that is not shared with files; None if it is gone (Linux)."""
    if process is None:
        return None
    try:
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    except OSError:
        return None
    found = next((line for line in lines if line.startswith("RssAnon:")), None)
    return None if found is None else int(found.split()[1]) / 1024
