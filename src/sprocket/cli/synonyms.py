"""What is suggested for a command that there is not: by its meaning, or by its spelling."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

_SHOW = ("show", "status", "list", "cluster")
_CREATE = ("create", "upload", "send")
_UPDATE = ("update", "set", "upload")
_DELETE = ("delete", "remove", "recall")
_LIST = ("list", "cluster")

#: Words that other tools use, and the commands that are meant, of which the first that a group has
#: is suggested.
SYNONYMS: dict[str, tuple[str, ...]] = {
    "describe": _SHOW, "info": _SHOW, "get": _SHOW, "view": _SHOW, "inspect": _SHOW, "stats": _SHOW,
    "stat": ("status", "lag", *_SHOW), "cat": ("show", "dump", "consume"), "print": _SHOW,
    "add": _CREATE, "new": _CREATE, "make": _CREATE, "mk": _CREATE,
    "alter": _UPDATE, "change": _UPDATE, "edit": _UPDATE, "modify": _UPDATE, "put": _UPDATE,
    "create": _CREATE, "update": _UPDATE, "set": _UPDATE, "config": _UPDATE,
    "rm": _DELETE, "del": _DELETE, "drop": _DELETE, "remove": _DELETE, "delete": _DELETE,
    "destroy": _DELETE,
    "cancel": ("recall", *_DELETE), "ls": _LIST, "all": _LIST,
    "offsets": ("lag", "status", "group lag"), "offset": ("lag", "status", "group lag"),
    "progress": ("lag", "group lag"), "reset-offsets": ("reset", "group reset"),
    "copy": ("clone", "resend"), "seek": ("reset", "group reset"),
    "search": ("find", "message find"), "query": ("find", "message find"),
    "retry": ("resend", "deadletters resend"), "replay": ("resend", "pipeline run"),
    "consumers": ("members", "group"), "clients": ("members", "group members"),
    "connections": ("members", "group members"), "rate": ("volume", "topic volume"),
    "produce": ("send",), "publish": ("send",), "producer": ("send",), "pub": ("send",),
    "receive": ("consume",), "subscribe": ("consume",), "pull": ("consume",), "read": ("consume",),
    "consumer": ("consume", "group"), "sub": ("consume",), "tail": ("consume",),
    "topics": ("topic",), "groups": ("group",), "messages": ("message",), "filters": ("filter",),
    "users": ("user",), "acls": ("acl",), "permission": ("acl",), "permissions": ("acl",),
    "allow": ("grant", "acl grant"), "deny": ("grant", "acl grant"), "can": ("test", "acl test"),
    "passwd": ("update", "user update"), "login": ("user",),
    "brokers": ("cluster",), "clusters": ("cluster",), "nodes": ("cluster",),
    "status": ("show", "cluster"), "show": _SHOW,
    "dlq": ("deadletters",), "dead-letters": ("deadletters",), "deadletter": ("deadletters",),
    "namesrv": ("nameserver",), "mqnamesrv": ("nameserver",), "mqbroker": ("broker",),
    "mqadmin": ("topic",), "settings": ("config",), "configure": ("config",),
    "start": ("standalone",), "server": ("standalone",), "serve": ("standalone",),
    "run": ("standalone", "pipeline run"), "dev": ("standalone",), "version": ("--version",),
    "help": ("--help",), "validate": ("check", "verify", "config check"),
    "test": ("check", "verify"), "fix": ("repair", "store repair"),
}  # fmt: skip


class CommandGroup(TyperGroup):
    """A group of commands that suggests the one that is meant by another word."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the first argument names; a suggestion if there is none."""
        if args and args[0] not in self.commands and (meant := self._meant(args[0].lower())):
            ctx.fail(f"No such command {args[0]!r}. Did you mean {meant!r}?")
        return super().resolve_command(ctx, args)

    def _meant(self, word: str) -> str | None:
        return next(
            (
                each
                for each in SYNONYMS.get(word, ())
                if each.startswith("--") or each.partition(" ")[0] in self.commands
            ),
            None,
        )
