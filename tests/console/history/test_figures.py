"""Figures of brokers, as they say them."""

from __future__ import annotations

from sprocket.console.history.figures import figures_of


def test_the_first_of_three_rates_counts_and_old_names_are_known() -> None:
    state = {"putTps": "1.5 2 3", "getTransferedTps": "4 5 6", "commitLogDiskRatio": "0.5"}
    assert figures_of(state) == {"put": 1.5, "get": 4.0, "disk": 0.5}


def test_what_is_no_number_is_left_out() -> None:
    assert figures_of({"putTps": "", "getTransferredTps": "nan", "commitLogDiskRatio": "x"}) == {}
