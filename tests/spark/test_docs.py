from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from sprocket.spark.options.options import BatchOptions, StoreOptions, StreamOptions
from sprocket.spark.options.write_options import WriteOptions
from sprocket.spark.records.schema import COLUMNS, DECODED_COLUMNS

PAGE = (Path(__file__).parents[2] / "docs" / "flows" / "spark.md").read_text()


def test_the_page_has_every_option_in_the_words_of_its_declaration() -> None:
    kinds = (BatchOptions, StreamOptions, StoreOptions, WriteOptions)
    for one in (one for kind in kinds for one in fields(kind)):
        about = one.metadata["option"]
        assert f"| `{about.name}` | {about.doc} |" in PAGE


def test_the_page_has_every_column() -> None:
    for column in (*COLUMNS, *DECODED_COLUMNS):
        default = "yes" if column.is_default else ""
        assert f"| `{column.name}` | {column.type} | {default} | {column.doc} |" in PAGE
