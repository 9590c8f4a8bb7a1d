"""Each setting is live or fixed, and no part of a broker keeps the old value of a live one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import sprocket
from sprocket.base.config import settings_of
from sprocket.broker.config import BrokerConfig
from sprocket.broker.live_settings import FIXED, LIVE, setting_rows, why_fixed
from sprocket.store.config import StoreConfig
from tests.broker.live_settings_page import PAGE, page

SOURCE = Path(sprocket.__file__).parent
DECLARED = {
    each.key: each for kind in (BrokerConfig, StoreConfig) for each in settings_of(kind).values()
}
NAMES = {each.name for key, each in DECLARED.items() if key in LIVE}
#: Modules that make parts: what they read outside of a function that they pass on is read once.
ASSEMBLIES = frozenset(
    {"parts", "request_table", "open_broker", "opening", "escape_parts", "group_broker", "tables"}
)
#: Where a live setting is read for a part that keeps its value; each of these parts is told when
#: it changes: by `change_parts`, by `Store.change`, or because the value is made anew at each use.
TOLD = {
    "broker/broker.__aexit__": {"drain_ms"},
    "broker/request_table.__init__": {"kernel"},
    "broker/request_table._changed": {"kernel"},
    "broker/sending/destination.of": {"timer_delay_seconds_max"},
    "broker/tables/tables.__init__": {"members_max", "lock_lease_ms"},
    "broker/tables/tables.change": {"members_max", "lock_lease_ms"},
    "broker/tables/topics.own_topics": {"template_queues", "trace_topic", "auto_create_topics"},
    "broker/members/replication.__init__": {"nameservers"},
    "broker/members/replication.stream_rules": {
        "replication_heartbeat_ms", "replication_silence_ms", "replication_batch_bytes",
        "replication_limit", "replication_bytes_per_second",
    },
    "broker/members/replication.copy_rules": {"copies_gap_bytes", "copies_follow_sync"},
    "store/opening/parts.__init__": {"disk_forced_percent"},
    "store/opening/parts._write_with": {"message_bytes_max"},
    "store/opening/parts.change": {"message_bytes_max"},
}  # fmt: skip
#: Functions that make a value of settings, which others keep.
MAKERS = frozenset({"of", "own_topics", "stream_rules", "copy_rules", "__init__"})
#: Values that are made anew at each use, or when the settings change.
MADE_ANEW = {"store/writing/retention.of", "delay/timers/shape.of"}


def reads(node: ast.AST, inside: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """The settings that are read below a node, each with the functions around it."""
    for child in ast.iter_child_nodes(node):
        around = inside
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            around = (*inside, child.name)
        elif isinstance(child, ast.Lambda):
            around = (*inside, "lambda")
        elif isinstance(child, ast.Attribute) and child.attr in NAMES:
            owner = ast.unparse(child.value)
            if owner.endswith(("config", "settings.store")) or owner == "store":
                yield inside, child.attr
        yield from reads(child, around)


def test_each_setting_is_live_or_fixed_for_a_reason() -> None:
    known = FIXED.keys() | LIVE
    assert not FIXED.keys() & LIVE
    assert known == DECLARED.keys()
    assert all(why_fixed(each) is None for key, each in DECLARED.items() if key in LIVE)
    assert [row.why_not for row in setting_rows()].count("") == len(LIVE)


def test_no_part_keeps_a_live_setting_without_being_told_of_its_change() -> None:
    kept: dict[str, set[str]] = {}
    for part in ("broker", "store", "delay", "transaction", "replication", "quotas"):
        for path in sorted((SOURCE / part).rglob("*.py")):
            module = path.relative_to(SOURCE).with_suffix("").as_posix()
            for inside, name in reads(ast.parse(path.read_text())):
                is_once = path.stem in ASSEMBLIES or inside[-1:] == () or inside[-1] in MAKERS
                where = f"{module}.{inside[-1] if inside else ''}"
                if is_once and inside[-1:] != ("lambda",) and where not in MADE_ANEW:
                    kept.setdefault(where, set()).add(name)
    kept.pop("broker/group_broker.", None)
    assert kept == {where: names for where, names in TOLD.items() if where in kept}
    gone = TOLD.keys() - kept.keys() - {"broker/broker.__aexit__"}
    assert not gone, gone


def test_each_live_setting_is_read_somewhere_and_no_part_keeps_all_settings() -> None:
    texts = {
        path.relative_to(SOURCE).with_suffix("").as_posix(): path.read_text()
        for path in SOURCE.rglob("*.py")
        if "live_settings" not in path.name and not path.name.endswith("_pb2.py")
    }
    together = "\n".join(texts.values())
    unread = [name for name in NAMES if not re.search(rf"\.{name}\b", together)]
    assert not unread
    kept_whole = re.compile(r"self\._?\w+ = (\w+ = )?(self\._)?settings\.(config|store)$", re.M)
    keeping = {
        module
        for module, text in texts.items()
        if module.startswith(("broker/", "delay/", "transaction/")) and kept_whole.search(text)
    }
    assert keeping == {"broker/tables/rights"}  # of what is fixed


def test_the_page_of_settings_is_what_the_tables_say() -> None:
    assert PAGE.read_text() == page(), "python -m tests.broker.live_settings_page writes it"
