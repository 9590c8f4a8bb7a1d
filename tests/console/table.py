"""The table of all operations in the guide. `python -m tests.console.table` writes it anew."""

from __future__ import annotations

from pathlib import Path

from sprocket.console.api.openapi import VERSION_PATH
from sprocket.console.operations.table import OPERATIONS

PAGE = Path(__file__).parents[2] / "docs/guide/api.md"
MARK = "<!-- the table is made from the operations: python -m tests.console.table -->\n"


def table() -> str:
    """The table in Markdown."""
    rows = ["| Operation | Route | | Rights |", "|---|---|---|---|"]
    for each in OPERATIONS.values():
        mark = " **Changes.**" if each.is_change else ""
        rows.append(
            f"| `{each.name}` | `{each.method} {VERSION_PATH}{each.path}` | {each.title}{mark} "
            f"| {each.rights} |"
        )
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    before, mark, _ = PAGE.read_text().partition(MARK)
    PAGE.write_text(f"{before}{mark}\n{table()}")
