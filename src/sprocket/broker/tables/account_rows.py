"""The users and their policies as a state file has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sprocket.auth.accounts import AccountTable
from sprocket.store.state.snapshot import ConvertedRows


class AccountRows:
    """The form of the table in its file: each row is converted when it is written."""

    def __init__(self, accounts: AccountTable) -> None:
        self._accounts = accounts

    def to_json(self) -> Mapping[str, Any]:
        """The table as JSON for its file."""
        return self._accounts.to_json(ConvertedRows)

    def load(self, state: Mapping[str, Any]) -> None:
        """Loads the table from the JSON of its file.

        Raises:
            msgspec.ValidationError, ValueError: the JSON has another form.
        """
        self._accounts.load(state)
