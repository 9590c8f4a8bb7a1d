"""The page that shows the HTTP API to people: one document, without scripts or requests. Pure."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from typing import Any

from sprocket.console.api.openapi import VERSION_PATH
from sprocket.console.operations.declare import Operation

_STYLE = """
:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
body{margin:0 auto;max-width:60rem;padding:1rem}
code,.route{font-family:ui-monospace,monospace;overflow-wrap:anywhere}
section{border-top:1px solid #8888;padding:.5rem 0}
h2{font-size:1.25rem;margin:2rem 0 .5rem}h3{font-size:1rem;margin:.5rem 0}
table{border-collapse:collapse;width:100%;font-size:.9rem}
td,th{text-align:left;vertical-align:top;padding:.2rem .6rem .2rem 0}
.change{border:1px solid currentColor;border-radius:.3rem;padding:0 .3rem;font-size:.8rem}
nav a{margin-right:.8rem}
"""


def page(
    operations: Mapping[str, Operation], document: Mapping[str, Any], *, may_change: bool
) -> str:
    """The whole page, as HTML."""
    return "".join(_pieces(operations, document, may_change=may_change))


def _pieces(
    operations: Mapping[str, Operation], document: Mapping[str, Any], *, may_change: bool
) -> Iterator[str]:
    info = document["info"]
    base = document["servers"][0]["url"]
    yield (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{_text(info['title'])}: HTTP API</title><style>{_STYLE}</style></head><body>"
        f"<h1>{_text(info['title'])}: HTTP API</h1>"
    )
    for paragraph in info["description"].split("\n\n"):
        yield f"<p>{_text(paragraph)}</p>"
    switched = "on" if may_change else "off: only what reads is answered"
    yield (
        f"<p>Here changes are switched <strong>{switched}</strong>. The document for programs is "
        f'<a href="{_text(base)}/openapi.json">openapi.json</a>.</p><nav>'
    )
    subjects = list(dict.fromkeys(name.partition(".")[0] for name in operations))
    for each in subjects:
        yield f'<a href="#{_text(each)}">{_text(each.replace("_", " "))}</a>'
    yield "</nav>"
    for subject in subjects:
        yield f'<h2 id="{_text(subject)}">{_text(subject.replace("_", " ").capitalize())}</h2>'
        for operation in operations.values():
            if operation.name.partition(".")[0] == subject:
                yield from _section(operation, document, base)
    yield "</body></html>"


def _section(operation: Operation, document: Mapping[str, Any], base: str) -> Iterator[str]:
    mark = ' <span class="change">changes</span>' if operation.is_change else ""
    path = _text(f"{base}{VERSION_PATH}{operation.path}")
    yield (
        f'<section id="{_text(operation.name)}"><h3>{_text(operation.name)}{mark}</h3>'
        f'<p class="route">{operation.method} {path}</p>'
        f"<p>{_text(operation.about)}</p>"
    )
    if operation.rights:
        yield f"<p>Rights: {_text(operation.rights)}.</p>"
    own = document["components"]["schemas"][operation.parameters.__name__]
    rows = [
        f"<tr><td><code>{_text(name)}</code></td><td>{_text(kind_text(schema))}</td>"
        f"<td>{'yes' if name in own.get('required', ()) else ''}</td>"
        f"<td>{_text(_meaning(schema))}</td></tr>"
        for name, schema in own["properties"].items()
    ]
    if rows:
        yield "<table><tr><th>Parameter</th><th>Type</th><th>Needed</th><th>Meaning</th></tr>"
        yield from rows
        yield "</table>"
    yield "</section>"


def kind_text(schema: Mapping[str, Any]) -> str:
    """A schema's type in words."""
    if "anyOf" in schema:
        kinds = [kind_text(each) for each in schema["anyOf"] if each != {"type": "null"}]
        return " or ".join(kinds)
    kind = {"object": "map", "array": "list", "date-time": "time"}.get(
        schema.get("format") or schema.get("type", "anything"), schema.get("type", "anything")
    )
    if "minimum" in schema and "maximum" in schema and schema["maximum"] < 1 << 31:
        kind += f", {schema['minimum']} to {schema['maximum']}"
    return str(kind)


def _meaning(schema: Mapping[str, Any]) -> str:
    default = schema.get("default")
    shown = "" if default in (None, [], {}, "") else f" By default {str(default).lower()}."
    return f"{schema.get('description', '')}{shown}"


def _text(text: str) -> str:
    return html.escape(text, quote=True)
