"""Metrics as the text that Prometheus reads. Pure.

Source: the text-based exposition format 0.0.4 of Prometheus.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from sprocket.base.histogram import Histogram

#: The content type for a web server that serves the text.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def heading(name: str, kind: str, meaning: str) -> str:
    """What stands before the values of a metric: two lines."""
    meaning = meaning.replace("\\", r"\\").replace("\n", r"\n")
    return f"# HELP {name} {meaning}\n# TYPE {name} {kind}\n"


def line(name: str, labels: Mapping[str, str], value: float) -> str:
    """One value of a metric."""
    if not labels:
        return f"{name} {float(value):.15g}\n"
    shown = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{shown}}} {float(value):.15g}\n"


def distribution(name: str, labels: Mapping[str, str], histogram: Histogram) -> str:
    """One histogram: how many values are at most each bound, their sum and their number."""
    lines, below = [], 0
    for bound, count in zip((*histogram.bounds, math.inf), histogram.counts, strict=True):
        below += count
        shown = "+Inf" if bound == math.inf else f"{bound:.15g}"
        lines.append(line(f"{name}_bucket", {**labels, "le": shown}, below))
    lines.append(line(f"{name}_sum", labels, histogram.total))
    lines.append(line(f"{name}_count", labels, below))
    return "".join(lines)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
