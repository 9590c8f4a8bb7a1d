from __future__ import annotations

import signal
import threading

import pytest

from sprocket.spark.pipelines.parts.progress import Interrupt


def test_ctrl_c_asks_to_stop_and_pressed_again_interrupts() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupt() as interrupt:
        assert not interrupt.is_set
        signal.raise_signal(signal.SIGINT)
        assert interrupt.is_set
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_outside_the_main_thread_it_leaves_signals_alone() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def inside() -> None:
        with Interrupt() as interrupt:
            seen.append((interrupt.is_set, signal.getsignal(signal.SIGINT) is before))

    thread = threading.Thread(target=inside, daemon=True)
    thread.start()
    thread.join()
    assert seen == [(False, True)]
