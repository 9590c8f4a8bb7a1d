"""ECharts' script out of NiceGUI's files."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from sprocket.plots.echarts import echarts_script, plain_script

ENTRY = 'import{aS as a,b as c}from"./index-x_1.js";export{a as echarts,c as load};\n'
MODULE = "var t=1,zK={init:2};const gl=()=>import('./gl.js');export{t as b,zK as aS};\n"


def test_the_export_becomes_an_assignment() -> None:
    script = plain_script(ENTRY, MODULE)
    assert script is not None
    assert script.endswith("globalThis.echarts=zK})();")
    assert "export" not in script
    kept = plain_script(ENTRY, MODULE + "//# sourceMappingURL=index-x_1.js.map\n")
    assert kept == script


@pytest.mark.parametrize(
    ("entry", "module"),
    [
        ("", MODULE),
        ('export*from"echarts"', MODULE),
        (ENTRY, ""),
        (ENTRY, "var zK=1;export{zK as other};"),
        (ENTRY.replace("echarts", "charts"), MODULE),
        (ENTRY, 'import{x}from"./y.js";' + MODULE),
        (ENTRY, "var a='</script>';" + MODULE),
    ],
)
def test_files_of_another_form_give_no_script(entry: str, module: str) -> None:
    assert plain_script(entry, module) is None


def test_the_installed_library_has_the_form_that_is_known() -> None:
    pytest.importorskip("nicegui", reason="the console needs the extra console")
    script = echarts_script()
    assert script is not None
    assert re.search(r"globalThis\.echarts=[\w$]+\}\)\(\);$", script)


def test_without_the_library_there_is_no_script(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = importlib.util.spec_from_file_location("nicegui", tmp_path / "__init__.py")
    for spec in (None, found):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name, spec=spec: spec)
        assert echarts_script.__wrapped__() is None
