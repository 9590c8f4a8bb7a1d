"""Any history of subscriptions, against sets; and what is ready for whom."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from sprocket.broker.lite.ready import ReadyLites
from sprocket.broker.lite.subscriptions import LiteSubscriptions
from sprocket.message.lite import LiteName

ids = st.sampled_from(["c1", "c2", "c3"])
groups = st.sampled_from(["g", "h"])
parents = st.sampled_from(["p", "q"])
lites = st.lists(st.sampled_from("abcd"), max_size=4)
names = st.builds(LiteName, parents, st.sampled_from("abcd"))


class Subscribing(RuleBasedStateMachine):
    """`wanted` has the group, the parent topic and the lite topics of each client; `*` is all."""

    def __init__(self) -> None:
        super().__init__()
        self.subscriptions = LiteSubscriptions()
        self.ready = ReadyLites(self.subscriptions)
        self.wanted: dict[str, tuple[str, str, set[str]]] = {}
        #: What was made ready and neither read nor given up.
        self.marked: dict[str, set[LiteName]] = {}
        self.due: dict[tuple[str, LiteName], int] = {}
        self.now_ms = 0

    def client(self, client_id: str, group: str, parent: str) -> set[str]:
        before = self.subscriptions.find(client_id)
        client = self.subscriptions.client(client_id, group, parent, self.now_ms)
        if before is not None and before is not client:
            self.ready.forget_client(before)
            self.marked.pop(client_id, None)
        if self.wanted.get(client_id, (None, None))[:2] != (group, parent):
            self.wanted[client_id] = (group, parent, set())
        return self.wanted[client_id][2]

    @rule(client_id=ids, group=groups, parent=parents, some=lites)
    def add(self, client_id: str, group: str, parent: str, some: list[str]) -> None:
        known = self.client(client_id, group, parent)
        if "*" in known:
            return
        client = self.subscriptions.client(client_id, group, parent, self.now_ms)
        new = self.subscriptions.add(client, some)
        assert {name.lite for name in new} == set(some) - known
        known.update(some)

    @rule(client_id=ids, some=lites)
    def remove(self, client_id: str, some: list[str]) -> None:
        client = self.subscriptions.find(client_id)
        assert (client is None) == (client_id not in self.wanted)
        if client is None:
            return
        gone = self.subscriptions.remove(client, some)
        known = self.wanted[client_id][2]
        assert {name.lite for name in gone} == set(some) & known
        known.difference_update(some)
        for name in gone:
            self.ready.unmark(client, name)
            self.marked.get(client_id, set()).discard(name)

    @rule(client_id=ids, group=groups, parent=parents)
    def add_all(self, client_id: str, group: str, parent: str) -> None:
        known = self.client(client_id, group, parent)
        client = self.subscriptions.client(client_id, group, parent, self.now_ms)
        assert self.subscriptions.add_all(client) is ("*" not in known)
        known.clear()
        known.add("*")

    @rule(client_id=ids, name=names)
    def exclude(self, client_id: str, name: LiteName) -> None:
        client = self.subscriptions.find(client_id)
        if client is None or client.parent != name.parent:
            return
        excluded = self.subscriptions.exclude(client, name)
        wanted = {
            each
            for each, (group, parent, some) in self.wanted.items()
            if each != client_id
            and (group, parent) == (client.group, name.parent)
            and name.lite in some
        }
        assert {each.client_id for each in excluded} == wanted
        for each in wanted:
            self.wanted[each][2].discard(name.lite)

    @rule(client_id=ids)
    def leave(self, client_id: str) -> None:
        client = self.subscriptions.remove_client(client_id)
        assert (client is None) == (self.wanted.pop(client_id, None) is None)
        if client is not None:
            self.ready.forget_client(client)
            self.marked.pop(client_id, None)

    @rule(group=groups, name=names)
    def arrive(self, group: str, name: LiteName) -> None:
        by_name = {
            each
            for each, (own, parent, some) in self.wanted.items()
            if (own, parent) == (group, name.parent) and name.lite in some
        }
        of_all = {
            each
            for each, (own, parent, some) in self.wanted.items()
            if (own, parent) == (group, name.parent) and "*" in some
        }
        assert set(self.ready.mark(group, name)) == by_name | of_all
        for each in by_name:
            self.marked.setdefault(each, set()).add(name)
        for each in self.wanted:
            client = self.subscriptions.find(each)
            assert client is not None
            if each in by_name | of_all:
                assert name in self.ready.of(client)

    @rule(group=groups, name=names, in_ms=st.integers(1, 50))
    def block(self, group: str, name: LiteName, in_ms: int) -> None:
        self.due[group, name] = self.now_ms + in_ms
        is_next = self.ready.block(group, name, self.now_ms + in_ms)
        if is_next:
            assert self.due[group, name] == min(self.due.values())

    @rule(group=groups, name=names)
    def unblock(self, group: str, name: LiteName) -> None:
        self.due.pop((group, name), None)
        self.ready.unblock(group, name)

    @rule(by_ms=st.integers(0, 30))
    def wait(self, by_ms: int) -> None:
        self.now_ms += by_ms
        found = [tuple(each) for each in self.ready.due(self.now_ms)]
        wanted = {key for key, at_ms in self.due.items() if at_ms <= self.now_ms}
        assert set(found) == wanted
        assert len(found) == len(wanted)
        for key in wanted:
            del self.due[key]

    @invariant()
    def subscriptions_are_as_wanted(self) -> None:
        self.subscriptions.validate()
        assert self.ready.next_ms == min(self.due.values(), default=None)
        assert len(self.subscriptions) == len(self.wanted)
        for client_id, (group, parent, some) in self.wanted.items():
            client = self.subscriptions.find(client_id)
            assert client is not None
            assert (client.group, client.parent) == (group, parent)
            assert client.has_all is ("*" in some)
            assert set(client.lites) == some - {"*"}
            if not client.has_all:
                assert set(self.ready.of(client)) >= self.marked.get(client_id, set()) & {
                    LiteName(parent, lite) for lite in some
                }


TestSubscribing = Subscribing.TestCase
TestSubscribing.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, print_blob=True
)
