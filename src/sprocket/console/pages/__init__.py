"""The pages of the console, one a module. `PAGES` says which there are, in navigation's order.

A new page is a module with a function `build(visit)`, which makes its content, and its
`PAGE = ConsolePage(path, title, icon, build)`; then a line here.
"""

from __future__ import annotations

from sprocket.console.pages import message, messages, overview, topic, topics
from sprocket.console.web.visits import ConsolePage

PAGES: tuple[ConsolePage, ...] = (
    overview.PAGE, topics.PAGE, topic.PAGE, messages.PAGE, message.PAGE,
)  # fmt: skip
