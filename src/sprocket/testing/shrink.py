"""Searches the smallest form of a scenario of consumption that still fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sprocket.testing.invariants import Violation
from sprocket.testing.scenarios import SCENARIOS, Scenario, play


def shrink(name: str, seed: int) -> Violation | None:
    """The failure of the smallest form; None if the scenario does not fail, or has no smaller form.

    With fewer groups, faults, members or messages the whole history changes, so it probably, but
    not certainly, fails for the same reason: compare the first line of the failure.
    """
    if name not in SCENARIOS:
        return None
    smallest = SCENARIOS[name]
    failure = _failure(name, seed, smallest)
    has_shrunk = failure is not None
    while has_shrunk:
        has_shrunk = False
        for smaller in _smaller(smallest):
            again = _failure(name, seed, smaller)
            if again is not None:
                smallest, failure, has_shrunk = smaller, again, True
                break
    return failure


def _failure(name: str, seed: int, scenario: Scenario) -> Violation | None:
    try:
        play(name, seed, instead=scenario)
    except Violation as violation:
        return violation
    return None


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    styles, traffic = scenario.styles, scenario.traffic
    if len(styles) > 1:
        for style in styles:
            yield replace(scenario, styles=tuple(each for each in styles if each is not style))
    if scenario.count > 1:
        yield replace(scenario, count=scenario.count // 2)
        yield replace(scenario, count=scenario.count - 1)
    if traffic.producers > 1:
        yield replace(scenario, traffic=replace(traffic, producers=1))
    if traffic.messages > 3:
        yield replace(scenario, traffic=replace(traffic, messages=traffic.messages // 2))
    for style in styles:
        if style.members > 1:
            fewer = replace(style, members=style.members - 1)
            yield replace(scenario, styles=tuple(fewer if s is style else s for s in styles))
    for fault in dict.fromkeys(scenario.faults):
        left = tuple(each for each in scenario.faults if each != fault)
        if left:
            yield replace(scenario, faults=left)
