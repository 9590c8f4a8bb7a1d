"""The table of all metrics in the guide. `python -m tests.metrics.table` writes it anew."""

from __future__ import annotations

from pathlib import Path

from sprocket.metrics.names import BROKER, CONTAINER, NAMESERVER, PROXY

PAGE = Path(__file__).parents[2] / "docs/guide/metrics.md"
MARK = "<!-- the table is made from sprocket.metrics.names: python -m tests.metrics.table -->\n"


def table() -> str:
    """The table in Markdown."""
    rows = ["| Metric | Kind | Labels | |", "|---|---|---|---|"]
    for metric in (*BROKER, *NAMESERVER, *PROXY, *CONTAINER):
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        unit = f" In {metric.unit}." if metric.unit else ""
        rows.append(
            f"| `{metric.name}` | {metric.kind.value} | {labels} | {metric.meaning}{unit} |"
        )
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    before, mark, _ = PAGE.read_text().partition(MARK)
    PAGE.write_text(f"{before}{mark}\n{table()}")
