"""`sprocket acl`: what users may do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sprocket.base.errors import UsageError
from sprocket.cli import render
from sprocket.cli.asking import ask
from sprocket.cli.options import (
    NAMESERVER,
    Broker,
    Cluster,
    Json,
    NameServers,
    Timeout,
    Yes,
    command,
    confirm,
)
from sprocket.cli.users import UserName, by_broker, by_row

if TYPE_CHECKING:
    from sprocket.admin.caller import Caller
    from sprocket.admin.permission_tests import PermissionTest
    from sprocket.auth.policies import Action, PolicyEntry, UserPolicies

app = typer.Typer(help="What users may do: list, show, grant, revoke, test; import of 4.x's files.")

_ACTIONS = "Pub, Sub, Create, Update, Delete, Get, List or All"
Resource = Annotated[
    str,
    typer.Argument(
        metavar="RESOURCE",
        help="Topic:NAME, Group:NAME or Cluster:NAME, whose name may end with *; or * for all.",
    ),
]
Actions = Annotated[
    list[str], typer.Argument(metavar="ACTION...", help=f"What it may do there: {_ACTIONS}.")
]
Default = Annotated[
    bool,
    typer.Option("--default", help="The default policy, which counts where no other entry does."),
]


@command(app, "list", "sprocket acl list", "sprocket acl list --json")
def list_acls(
    cluster: Cluster = None,
    broker: Broker = None,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Lists the policies of all users."""
    from sprocket.admin import acls

    async def question(caller: Caller) -> dict[str, dict[str, UserPolicies]]:
        return await acls.all_policies(caller, cluster=cluster, broker=broker)

    found = ask(nameserver, timeout, question)
    _show(
        [
            (name, user, entry)
            for name, those in found.items()
            for user, policies in sorted(those.items())
            for entry in policies.entries
        ],
        as_json=as_json,
    )


@command(app, "show", "sprocket acl show billing", "sprocket acl show billing --json")
def show(
    user: UserName,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Shows what a user may do, at each broker."""
    from sprocket.admin import acls

    async def question(caller: Caller) -> dict[str, UserPolicies]:
        return await acls.policies(caller, user)

    found = ask(nameserver, timeout, question)
    rows = [(name, user, each) for name, policies in found.items() for each in policies.entries]
    _show(rows, as_json=as_json)


def _show(found: list[tuple[str, str, PolicyEntry]], *, as_json: bool) -> None:
    if as_json:
        for broker, user, entry in found:
            render.json({"user": user, **_fields(entry), "broker": broker})
        return
    rows = [(broker, (user, *_cells(entry))) for broker, user, entry in found]
    render.table(
        ("user", "decision", "actions", "resource", "from", "policy", "brokers"),
        ((*row, brokers) for row, brokers in by_row(rows)),
    )


def _cells(entry: PolicyEntry) -> tuple[str | None, ...]:
    return (
        entry.decision,
        ",".join(sorted(entry.actions)),
        str(entry.resource),
        ",".join(entry.networks) or None,
        entry.kind,
    )


def _fields(entry: PolicyEntry) -> dict[str, Any]:
    return {
        "decision": entry.decision,
        "actions": sorted(entry.actions),
        "resource": str(entry.resource),
        "from": list(entry.networks),
        "policy": entry.kind,
    }


@command(
    app,
    "grant",
    "sprocket acl grant billing Topic:orders Sub",
    "sprocket acl grant billing Group:billing Sub",
    "sprocket acl grant shop 'Topic:orders-*' Pub --from 10.0.0.0/8",
    "sprocket acl grant shop Topic:orders-internal Pub Sub --deny",
    "sprocket acl grant operator 'Cluster:*' Get",
)
def grant(
    user: UserName,
    resource: Resource,
    actions: Actions,
    networks: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="NETWORK",
            help="Only for requests from there: 10.0.0.0/8, or one address; may be given again.",
        ),
    ] = None,
    denies: Annotated[
        bool, typer.Option("--deny", help="Deny it, whatever else allows it.")
    ] = False,
    is_default: Default = False,
    replaces: Annotated[
        bool,
        typer.Option(
            "--replace", help="Replace an entry for this resource that says other things."
        ),
    ] = False,
    cluster: Cluster = None,
    broker: Broker = None,
    nameserver: NameServers = NAMESERVER,
    timeout: Timeout = 5.0,
) -> None:
    """Lets a user do something, or denies it. What it may do there already stays.

    Of the entries about a request the one with the narrowest resource decides: a name before the
    start of one, a longer start before a shorter one.
    """
    from sprocket.admin import acls
    from sprocket.auth.policies import PolicyEntry

    entry = PolicyEntry.of(
        resource, _split(actions), "Deny" if denies else "Allow", networks or (), _kind(is_default)
    )

    async def question(caller: Caller) -> dict[str, PolicyEntry]:
        return await acls.grant(
            caller, user, entry, replaces=replaces, cluster=cluster, broker=broker
        )

    by_broker(ask(nameserver, timeout, question), user)


@command(
    app,
    "revoke",
    "sprocket acl revoke billing Topic:orders",
    "sprocket acl revoke billing Topic:orders Pub",
    "sprocket acl revoke billing --all --yes",
)
def revoke(
    user: UserName,
    resource: Annotated[
        str | None, typer.Argument(metavar="[RESOURCE]", help="As it was granted.")
    ] = None,
    actions: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ACTION...]", help="Only these; the others of the entry stay."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All entries of all its policies.")
    ] = False,
    is_default: Default = False,
    yes: Yes = False,
    cluster: Cluster = None,
    broker: Broker = None,
    nameserver: NameServers = NAMESERVER,
    timeout: Timeout = 5.0,
) -> None:
    """Takes an entry, or some of its actions, from what a user may do or is denied."""
    from sprocket.admin import acls
    from sprocket.auth.policies import PolicyKind
    from sprocket.auth.resources import ResourcePattern

    if (resource is None) != everything:
        raise UsageError("give the RESOURCE of an entry, or --all for all entries")
    pattern = None if resource is None else ResourcePattern.parse(resource)
    some = _parsed(actions or [])
    kind = PolicyKind(_kind(is_default))
    what = "all entries" if resource is None else f"{', '.join(some) or 'the entry'} on {resource}"
    confirm(f"Take {what} from {user}?", yes=yes)

    async def question(caller: Caller) -> dict[str, PolicyEntry | None]:
        return await acls.revoke(
            caller, user, pattern, actions=some, kind=kind, cluster=cluster, broker=broker
        )

    done = ask(nameserver, timeout, question)
    if not done:
        raise acls.EntryNotFound(f"no policy of {user} says this: see sprocket acl show {user}")
    by_broker({name: left or "taken" for name, left in done.items()}, user)


@command(
    app,
    "test",
    "sprocket acl test billing Sub Topic:orders",
    "sprocket acl test shop Pub Topic:orders-internal --from 10.1.2.3",
)
def check(
    user: UserName,
    action: Annotated[str, typer.Argument(metavar="ACTION", help=f"{_ACTIONS[:-7]}.")],
    resource: Annotated[
        str, typer.Argument(metavar="RESOURCE", help="Topic:NAME, Group:NAME or Cluster:NAME.")
    ],
    source: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="IP",
            help="Address of who asks. Without it, entries that name networks do not count.",
        ),
    ] = "",
    cluster: Cluster = None,
    broker: Broker = None,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Says whether a user may do something, and which entry decides. Exit code 1 if it may not.

    The verdict is that of Sprocket's brokers with authorization on. `docs/formats/rights.md` has
    the rights that each request needs.
    """
    from sprocket.admin import permission_tests
    from sprocket.auth.policies import Action, word
    from sprocket.auth.resources import Resource, ResourcePattern

    pattern = ResourcePattern.parse(resource)
    if pattern.kind is None or pattern.is_prefix:
        raise UsageError(f"a request is about one resource, such as Topic:orders, not {resource}")
    wanted = Resource(pattern.kind, pattern.name)
    asked = word(Action, action)
    _check_address(source)

    async def question(caller: Caller) -> dict[str, PermissionTest]:
        return await permission_tests.judge(
            caller, user, asked, wanted, source=source, cluster=cluster, broker=broker
        )

    found = ask(nameserver, timeout, question)
    for name, each in found.items():
        _show_test(name, each, as_json=as_json)
    if not all(each.is_allowed for each in found.values()):
        raise typer.Exit(1)


def _show_test(broker: str, found: PermissionTest, *, as_json: bool) -> None:
    if as_json:
        render.json(
            {
                "broker": broker,
                "allowed": found.is_allowed,
                "why": found.why,
                "decides": None if found.decides is None else _fields(found.decides),
                "lost": [_fields(each) for each in found.lost],
                "elsewhere": [_fields(each) for each in found.elsewhere],
            }
        )
        return
    verdict = "allowed" if found.is_allowed else "refused"
    typer.echo(f"{broker}: {verdict}: {found.why}")
    for each in found.lost:
        typer.echo(f"  does not count beside it: {each}")
    for each in found.elsewhere:
        typer.echo(f"  counts only from its networks: {each}")


def _check_address(source: str) -> None:
    import ipaddress

    try:
        ipaddress.ip_address(source or "::")
    except ValueError:
        raise UsageError(f"--from takes one IP address, not {source!r}") from None


def _kind(is_default: bool) -> str:
    return "Default" if is_default else "Custom"


def _split(actions: list[str]) -> list[str]:
    return [part for each in actions for part in each.replace("|", ",").split(",") if part.strip()]


def _parsed(actions: list[str]) -> frozenset[Action]:
    from sprocket.auth.policies import Action, word

    return frozenset(word(Action, each) for each in _split(actions))
