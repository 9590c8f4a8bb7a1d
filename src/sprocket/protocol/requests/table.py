"""All declared requests by code, for logs, recordings and tests."""

from __future__ import annotations

import importlib
import pkgutil

from sprocket.protocol import requests
from sprocket.protocol.command import Header


def _declared() -> dict[int, type[Header]]:
    found: dict[int, type[Header]] = {}
    for name in sorted(each.name for each in pkgutil.iter_modules(requests.__path__)):
        module = importlib.import_module(f"{requests.__name__}.{name}")
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Header) and value.code:
                assert found.setdefault(value.code, value) is value, f"{value.code} twice"
    return found


#: Request code to declared header, of every module of this package.
REQUESTS: dict[int, type[Header]] = _declared()
