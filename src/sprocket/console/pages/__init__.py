"""The pages of the console, one a module. `PAGES` says which there are, in navigation's order.

A new page is a module with a function `build(visit)`, which makes its content, and its
`PAGE = ConsolePage(path, title, icon, build)`; then a line here.
"""

from __future__ import annotations

from sprocket.console.pages import (
    access,
    audit,
    dead_letters,
    filters,
    group,
    groups,
    message,
    messages,
    overview,
    reports,
    settings,
    topic,
    topics,
    waiting,
)
from sprocket.console.web.visits import ConsolePage

PAGES: tuple[ConsolePage, ...] = (
    overview.PAGE, topics.PAGE, topic.PAGE, messages.PAGE, message.PAGE, groups.PAGE, group.PAGE,
    dead_letters.PAGE, waiting.PAGE, access.PAGE, filters.PAGE, settings.PAGE, audit.PAGE,
    reports.PAGE,
)  # fmt: skip
