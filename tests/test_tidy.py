"""The style that tools do not know, read off the source tree itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "sprocket"
TESTS = ROOT / "tests"

#: Lower number = lower layer. A module may import its own package and lower layers only.
LAYERS: dict[str, int] = {
    "base": 0,
    "message": 1,
    "protocol": 2,
    "filter": 2,
    "schemas": 2,
    "auth": 3,
    "store": 3,
    "remoting": 3,
    "clientcore": 3,
    "delay": 4,
    "transaction": 4,
    "filterserver": 4,
    "quotas": 4,
    "election": 4,
    "replication": 4,
    "audit": 4,
    "plots": 4,
    "broker": 5,
    "nameserver": 5,
    "client": 5,
    "admin": 6,
    "proxy": 6,
    "spark": 6,
    "metrics": 7,
    "console": 7,
    "standalone": 8,
    "container": 8,
    "integrations": 8,
    "cli": 9,
    "demo": 9,
    "testing": 10,
}
#: Pairs that one layer number alone would allow or forbid.
FORBIDDEN = {
    ("store", "protocol"), ("store", "filter"), ("store", "remoting"), ("remoting", "store"),
    ("broker", "client"), ("client", "broker"), ("nameserver", "broker"), ("broker", "nameserver"),
    ("client", "store"), ("client", "nameserver"), ("nameserver", "client"),
    ("nameserver", "store"), ("admin", "spark"), ("admin", "standalone"),
    ("protocol", "filter"), ("filter", "protocol"), ("spark", "client"), ("proxy", "broker"),
    ("proxy", "store"), ("proxy", "nameserver"), ("proxy", "admin"), ("proxy", "spark"),
}  # fmt: skip
#: Pairs of one layer that are allowed, one way: pipelines do what an operator does, and standalone
#: starts a proxy.
ALLOWED = {("spark", "admin"), ("standalone", "proxy")}
#: Inside a package, from the ground up: a module imports its own sub-package, modules at the root
#: of its rank, and whatever has a lower rank. Modules at the root that are not named come last.
ROOMS: dict[str, tuple[tuple[str, ...], ...]] = {
    "client": (
        ("base", "assign", "config", "pop_config"), ("session",), ("fetching", "sending"),
        ("group",), ("delivery",), ("popping",),
    ),
    "store": (
        ("config",), ("state",), ("log",), ("views",), ("reading", "writing", "inspection"),
        ("opening", "backup"),
    ),
    "broker": (
        ("replica_config",), ("account_config",), ("pop_config",), ("lite_config",),
        ("elector_config",),
        ("config", "live_settings", "settings", "dispatch", "slave_requests"),
        ("tables",), ("members",), ("reading", "sending"), ("pop",), ("lite", "logical"),
        ("operate",),
    ),
    "spark": (
        ("options", "records", "brokers", "worker"), ("checkpoints",), ("reading", "writing"),
        ("store_files", "query_progress"), ("source",), ("launching", "pipelines"),
    ),
    "spark/pipelines": (("parts",), ("tables",), ("changes",)),
    "delay": (("levels",), ("timers",)),
    "proxy": (
        ("http2", "config"), ("messages",), ("brokers",), ("clients",), ("methods",),
    ),
    "remoting": (("address", "turns", "ip_counts"), ("tls",)),
    "console": (("operations",), ("history",), ("views",), ("api",), ("web",), ("pages",)),
    "integrations": (("queues",),),
}  # fmt: skip
#: `runtime` is the world behind the ports: it knows the ports only, and whoever starts something
#: for real may take it as a default.
RUNTIME_USERS = {
    "client", "standalone", "container", "cli", "demo", "spark", "admin", "testing", "nameserver",
    "console",
}  # fmt: skip

PURE_PACKAGES = ("message", "protocol", "filter", "auth", "clientcore")
IMPURE = {
    "asyncio", "random", "socket", "os", "threading", "time", "uuid", "secrets",
    "subprocess", "select", "ssl", "signal", "mmap", "pathlib",
}  # fmt: skip

#: Times are values; these ask the clock for one.
CLOCK_READS = {"now", "today", "utcnow"}

#: Modules that make the parts of something and give each what it needs.
ASSEMBLIES = ("parts", "request_table", "opening", "dispatcher", "broker", "standalone")

BANNED_NAMES = re.compile(
    r"(manager|service|controller|processor|handler|util|utils|helper|helpers|impl|wrapper|context)$",
    re.IGNORECASE,
)
#: Classes that share their name on purpose, with the modules that may, and why.
MIRRORED = {
    "LitePullConsumer": (
        {"client/lite_pull_consumer", "client/blocking"},
        "the same without a loop",
    ),
    "Producer": ({"client/producer", "client/blocking"}, "the same without a loop"),
    "PullConsumer": ({"client/pull_consumer", "client/blocking"}, "the same without a loop"),
    "PushConsumer": ({"client/push_consumer", "client/blocking"}, "the same without a loop"),
    "SimpleConsumer": ({"client/simple_consumer", "client/blocking"}, "the same without a loop"),
    "TransactionalProducer": (
        {"client/transactional_producer", "client/blocking"},
        "the same without a loop",
    ),
}  # fmt: skip
LEFTOVERS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b(?!_XXXX)")

MODULE_LINES_MAX = 400
TABLE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60


def modules() -> list[Path]:
    return sorted(p for p in SOURCE.rglob("*.py") if "__pycache__" not in p.parts)


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).with_suffix("").as_posix()


def package_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return parts[0]


def runtime_imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, module) of every import of ours or others, except those for type checkers only."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            skipped.update(id(inner) for child in node.body for inner in ast.walk(child))
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            if node.module == "sprocket":
                for alias in node.names:
                    yield node.lineno, f"sprocket.{alias.name}"
            else:
                yield node.lineno, node.module


def upward(user: str, used: str) -> bool:
    """Whether an import of package `used` by package `user` goes up, or across a wall."""
    if user == used or used.startswith("__"):
        return False
    if user == "runtime":
        return used != "base"
    if used == "runtime":
        return user not in RUNTIME_USERS
    if (user, used) in FORBIDDEN:
        return True
    if (user, used) in ALLOWED:
        return False
    return LAYERS[used] >= LAYERS[user]


@pytest.mark.parametrize(
    ("user", "used", "expected"),
    [
        ("broker", "store", False),
        ("store", "broker", True),
        ("store", "protocol", True),
        ("runtime", "base", False),
        ("runtime", "store", True),
        ("client", "runtime", False),
        ("broker", "runtime", True),
        ("broker", "testing", True),
        ("spark", "admin", False),
        ("admin", "spark", True),
    ],
)
def test_the_arrow_test_knows_up_from_down(user: str, used: str, expected: bool) -> None:
    assert upward(user, used) is expected


def test_imports_go_only_downwards() -> None:
    wrong = []
    for path in modules():
        user = package_of(path)
        if user in ("__init__", "__main__"):
            continue
        for line, name in runtime_imports(ast.parse(path.read_text())):
            parts = name.split(".")
            if parts[0] == "sprocket" and len(parts) > 1 and upward(user, parts[1]):
                wrong.append(f"{name_of(path)}:{line} imports {name}")
    assert not wrong, "\n".join(wrong)


def rank(package: str, entry: str) -> int:
    """How high in its package a sub-package, or a module at the root, stands."""
    for height, entries in enumerate(ROOMS[package]):
        if entry in entries:
            return height
    return len(ROOMS[package])


def leaves_its_room(package: str, user: str, used: str) -> bool:
    """Whether one entry of a package must not import another: it has no lower rank.

    Modules at the root are one room.
    """
    if user == used or rank(package, used) < rank(package, user):
        return False
    both_at_root = not any((SOURCE / package / each).is_dir() for each in (user, used))
    return not (both_at_root and rank(package, user) == rank(package, used))


@pytest.mark.parametrize(
    ("package", "user", "used", "expected"),
    [
        ("client", "session", "base", False),
        ("client", "base", "session", True),
        ("client", "fetching", "sending", True),
        ("client", "blocking", "producer", False),
        ("client", "delivery", "producer", True),
        ("store", "store", "opening", False),
        ("store", "log", "views", True),
    ],
)
def test_the_room_test_knows_the_directions(
    package: str, user: str, used: str, expected: bool
) -> None:
    assert leaves_its_room(package, user, used) is expected


def test_rooms_of_a_package_import_in_one_direction() -> None:
    wrong = []
    for path in modules():
        for line, name in runtime_imports(ast.parse(path.read_text())):
            for package in ROOMS:
                prefix = f"sprocket.{package.replace('/', '.')}."
                own = f"sprocket.{name_of(path).replace('/', '.')}"
                if not name.startswith(prefix) or not own.startswith(prefix):
                    continue
                user, used = (each.removeprefix(prefix).split(".")[0] for each in (own, name))
                if leaves_its_room(package, user, used):
                    wrong.append(f"{name_of(path)}:{line} imports {name}")
    assert not wrong, "\n".join(wrong)


def is_pure(path: Path, tree: ast.Module) -> bool:
    """Whether a module is of a pure package, or its docstring calls it pure."""
    return package_of(path) in PURE_PACKAGES or bool(
        re.search(r"\bPure\b", ast.get_docstring(tree) or "")
    )


def test_pure_modules_take_nothing_from_the_world() -> None:
    wrong = []
    for path in modules():
        tree = ast.parse(path.read_text())
        if not is_pure(path, tree):
            continue
        for line, name in runtime_imports(tree):
            if name.split(".")[0] in IMPURE:
                wrong.append(f"{name_of(path)}:{line} imports {name}")
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in CLOCK_READS:
                wrong.append(f"{name_of(path)}:{node.lineno} reads the clock")
    assert not wrong, "\n".join(wrong)


def test_nothing_is_named_after_what_everything_is() -> None:
    wrong = []
    for path in modules():
        if BANNED_NAMES.search(path.stem):
            wrong.append(f"module {name_of(path)}")
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and BANNED_NAMES.search(node.name):
                wrong.append(f"class {name_of(path)}.{node.name}")
    assert not wrong, "\n".join(wrong)


def test_a_class_name_means_one_thing() -> None:
    homes: dict[str, list[str]] = {}
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(name_of(path))
    wrong = [
        f"{name}: {', '.join(found)}"
        for name, found in sorted(homes.items())
        if len(found) > 1 and (name not in MIRRORED or sorted(found) != sorted(MIRRORED[name][0]))
    ]
    assert not wrong, "\n".join(wrong)
    assert not [name for name in MIRRORED if len(homes.get(name, [])) < 2], "no mirror any more"


def test_every_logger_has_one_name() -> None:
    wrong = []
    for path in modules():
        for node in ast.parse(path.read_text()).body:
            if not isinstance(node, ast.Assign):
                continue
            if ast.unparse(node.value).startswith("logging.getLogger("):
                names = [ast.unparse(target) for target in node.targets]
                if names != ["logger"]:
                    wrong.append(f"{name_of(path)}: {', '.join(names)}")
    assert not wrong, "\n".join(wrong)


def test_modules_and_functions_stay_small() -> None:
    wrong = []
    for path in modules():
        text = path.read_text()
        lines = text.count("\n")
        tree = ast.parse(text)
        has_code = any(
            isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef) for n in ast.walk(tree)
        )
        limit = TABLE_LINES_MAX if "requests" in path.parts or not has_code else MODULE_LINES_MAX
        if "protocol" in path.parts and path.stem in ("codes", "bodies"):
            limit = TABLE_LINES_MAX
        if lines > limit:
            wrong.append(f"{name_of(path)}: {lines} lines, at most {limit}")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                size = (node.end_lineno or node.lineno) - node.lineno + 1 - docstring_lines(node)
                if size > FUNCTION_LINES_MAX:
                    wrong.append(f"{name_of(path)}.{node.name}: {size} lines")
    assert not wrong, "\n".join(wrong)


def docstring_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        return (first.end_lineno or first.lineno) - first.lineno + 1
    return 0


def test_the_tree_of_errors_shows_those_of_other_modules() -> None:
    tree = ast.parse((SOURCE / "base" / "errors.py").read_text())
    drawing = ast.get_docstring(tree) or ""
    errors = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    missing = [
        f"{name_of(path)}.{node.name}"
        for path in modules()
        if name_of(path) != "base/errors"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        and errors & {ast.unparse(base) for base in node.bases}
        and not re.search(rf"\b{node.name}\b", drawing)
    ]
    assert not missing, "\n".join(missing)


def test_every_module_says_what_it_is() -> None:
    silent = [name_of(p) for p in modules() if not ast.get_docstring(ast.parse(p.read_text()))]
    assert not silent, silent


def test_every_module_has_its_test_beside_it() -> None:
    """A module is tested by the file of its own name, or its package's test names it."""
    untested = []
    for path in modules():
        if path.stem in ("__init__", "__main__"):
            continue
        relative = path.relative_to(SOURCE)
        mirrored = TESTS / relative.parent / f"test_{path.stem}.py"
        if not mirrored.exists() and name_of(path) not in declared_elsewhere():
            untested.append(f"{name_of(path)}: no {mirrored.relative_to(ROOT)}")
    assert not untested, "\n".join(untested)


def declared_elsewhere() -> set[str]:
    """Modules whose behaviour only shows through another module's door, with that door."""
    return {
        line.split(":")[0].strip()
        for line in (TESTS / "tested_through.txt").read_text().splitlines()
        if line.strip() and not line.startswith("#")
    }


def foreign_assignments(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, target) of every assignment to an attribute of something else than `self`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("setattr", "delattr"):
            yield node.lineno, ast.unparse(node)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("self.a = 1", 0),
        ("a = b = 1", 0),
        ("a.b = 1", 1),
        ("self.a.b = 1", 1),
        ("self.a, b.c = d", 1),
        ("a.b += 1", 1),
        ("a().b: int = 1", 1),
        ("setattr(a, 'b', 1)", 1),
    ],
)
def test_the_wiring_test_knows_another_s_attribute(text: str, count: int) -> None:
    assert len(list(foreign_assignments(ast.parse(text)))) == count


def test_parts_get_all_they_need_when_they_are_made() -> None:
    """Modules that assemble others set no attribute of what they assemble.

    What a part changes of itself, or through an alias of `self`, cannot be told from outside; so
    this looks only at the modules whose task is assembly.
    """
    wrong = [
        f"{name_of(path)}:{line} sets {target}"
        for path in modules()
        if path.stem in ASSEMBLIES
        for line, target in foreign_assignments(ast.parse(path.read_text()))
    ]
    assert not wrong, "\n".join(wrong)


def test_nothing_is_left_for_later() -> None:
    wrong = []
    for path in [*modules(), *sorted(TESTS.rglob("*.py")), *sorted((ROOT / "bench").rglob("*.py"))]:
        if path == Path(__file__):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if LEFTOVERS.search(line.replace("SCHEDULE_TOPIC_XXXX", "")):
                wrong.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert not wrong, "\n".join(wrong)


def test_broad_excepts_stand_only_at_the_borders() -> None:
    """Dispatch, a user's listener, the root of a task, an entry: each says so on its line."""
    wrong = []
    for path in modules():
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines, 1):
            if re.search(r"except (Exception|BaseException)\b", line) and "#" not in line:
                wrong.append(f"{name_of(path)}:{number}: say why this may catch everything")
    assert not wrong, "\n".join(wrong)


def test_links_between_pages_lead_somewhere() -> None:
    broken = []
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target, part in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", page.read_text()):
            if "://" in target:
                continue
            there = page.parent / target if target else page
            if not there.exists() or (part and part not in anchors(there)):
                broken.append(f"{page.relative_to(ROOT)} -> {target}#{part}")
    assert not broken, "\n".join(broken)


def anchors(page: Path) -> set[str]:
    """What a page's headings can be linked by."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}
