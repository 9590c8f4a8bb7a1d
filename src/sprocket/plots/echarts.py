"""ECharts' script as one plain script, from the copy that NiceGUI brings.

NiceGUI, on which the web console is built, has Apache ECharts in its wheel, as a module that
imports nothing, and an entry that says under which name it exports ECharts. A page in one file
cannot import a module, so its export is replaced by an assignment to `globalThis.echarts`. Where
the files do not have this form there is no script, and whoever asks does without plots.
"""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path

#: NiceGUI's entry: `import{aS as a,…}from"./index-….js";export{a as echarts,…};`
_ENTRY = re.compile(r'import\s*\{([^}]*)\}\s*from\s*"\./([\w.-]+)";\s*export\s*\{([^}]*)\}')
_EXPORT = re.compile(r"export\s*\{([^{}]*)\};?\s*(?://# sourceMappingURL=\S*)?\s*\Z")
_FOLDER = ("elements", "echart", "dist")


@cache
def echarts_script() -> str | None:
    """The script, about 1.1 MB, which sets `globalThis.echarts`; None if there is none.

    It imports nothing and contains no end of a script element, so it may stand in a page.
    """
    found = importlib.util.find_spec("nicegui")
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent.joinpath(*_FOLDER)
    try:
        entry = (folder / "index.js").read_text(encoding="utf-8")
        name = _ENTRY.match(entry)
        module = (folder / name[2]).read_text(encoding="utf-8") if name else ""
    except (OSError, UnicodeDecodeError):
        return None
    return plain_script(entry, module)


def plain_script(entry: str, module: str) -> str | None:
    """One script from an entry and the module that it imports; None if they have another form.

    Pure but for its place beside the files.
    """
    said, exported = _ENTRY.match(entry), _EXPORT.search(module)
    if said is None or exported is None:
        return None
    local = _name(said[3], by="echarts")
    there = None if local is None else _name(said[1], by=local)
    inside = None if there is None else _name(exported[1], by=there)
    body = module[: exported.start()]
    if inside is None or re.search(r"</script|<!--|^\s*import\s*[{*\"']", body, re.IGNORECASE):
        return None
    return f'(()=>{{"use strict";{body}\n;globalThis.echarts={inside}}})();'


def _name(names: str, *, by: str) -> str | None:
    """What `names` has on the left of `X as {by}`, or `by` if it stands alone."""
    for one in names.split(","):
        left, _, right = one.strip().partition(" as ")
        if (right or left) == by:
            return left
    return None
