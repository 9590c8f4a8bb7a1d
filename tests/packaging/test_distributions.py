"""The wheel has all of the package and nothing else, says what it needs, and runs."""

from __future__ import annotations

import email
import importlib.util
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from tests.packaging.distributions import ROOT, build, run

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("hatchling") is None,
    reason="hatchling is not installed: it is in the extra dev",
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build(ROOT, tmp_path_factory.mktemp("dist"))


def test_the_wheel_has_what_the_sources_have_and_nothing_else(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[1]) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    source = ROOT / "src"
    expected = {
        path.relative_to(source).as_posix()
        for package in ("sprocket", "pyspark_rocketmq")
        for path in (source / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert names == expected
    assert "sprocket/py.typed" in names


def test_its_metadata_are_those_of_the_project(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[1]) as wheel:
        folder = f"sprocketmq-{PROJECT['version']}.dist-info"
        said = email.message_from_bytes(wheel.read(f"{folder}/METADATA"))
        assert wheel.read(f"{folder}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
        points = wheel.read(f"{folder}/entry_points.txt")
        assert b"sprocket = sprocket.cli.entry:main" in points
        assert b"[pytest11]\nsprocket = sprocket.testing.pytest_plugin" in points
        assert b"Root-Is-Purelib: true" in wheel.read(f"{folder}/WHEEL")
    assert (said["Name"], said["Version"]) == (PROJECT["name"], PROJECT["version"])
    assert said["Requires-Python"] == PROJECT["requires-python"]
    assert said["License-Expression"] == PROJECT["license"]
    assert set(said.get_all("Provides-Extra") or ()) == set(PROJECT["optional-dependencies"])
    needed = [each for each in said.get_all("Requires-Dist") or () if "extra ==" not in each]
    assert len(needed) == len(PROJECT["dependencies"])
    text = said.get_payload()
    assert isinstance(text, str)
    assert text.startswith("# Sprocket")


def test_the_source_archive_has_what_building_and_testing_take(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {
        "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "Makefile", "tests/conftest.py",
        "src/sprocket/py.typed", "docs/guide/metrics.md",
    }  # fmt: skip
    assert wanted <= names
    assert not [name for name in names if name.startswith((".venv", "dist/", ".mypy_cache", ".ci"))]
    assert not [name for name in names if "__pycache__" in name]


@pytest.mark.process
def test_the_wheel_runs_in_an_environment_of_its_own(
    built: tuple[Path, Path], tmp_path: Path
) -> None:
    """The libraries that it needs are lent from here, so nothing is fetched."""
    place = tmp_path / "env"
    venv.create(place, with_pip=False)
    python = str(place / "bin" / "python")
    installed = Path(run(python, "-c", "import site; print(site.getsitepackages()[0])").strip())
    # A .pth file inside a folder that was lent by one is not read, so an editable install of the
    # package there stays out.
    (installed / "lent.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    run(
        python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
        "--ignore-installed", "--no-compile", str(built[1]), cwd=tmp_path,
    )  # fmt: skip
    where = run(python, "-c", "import sprocket; print(sprocket.__file__)", cwd=tmp_path)
    assert str(installed) in where
    command = str(place / "bin" / "sprocket")
    assert run(command, "--version", cwd=tmp_path) == f"sprocket {PROJECT['version']}\n"
    assert "`brokerName`" in run(command, "config", "reference", cwd=tmp_path)
