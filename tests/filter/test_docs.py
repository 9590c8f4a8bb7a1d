"""The guide about filters tells the limits that there are."""

from __future__ import annotations

from pathlib import Path

from sprocket.filter import sql92, sql92_code, sql92_grammar, sql92_terms

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "guide" / "filters.md").read_text()


def test_the_pages_know_the_limits() -> None:
    decision = (DOCS / "decisions" / "0003-sql92-filters.md").read_text()
    limits = (sql92.TEXT_MAX, sql92_code.CONDITIONS_MAX, sql92_terms.DEPTH_MAX)
    for limit in limits:
        assert f" {limit:,} " in PAGE
        assert f" {limit:,} " in decision
    assert f" {sql92_grammar.TOKENS_MAX:,} " in decision
