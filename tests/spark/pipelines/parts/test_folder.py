"""Which folders are refused; what is done in others is in the tests of pipelines."""

from __future__ import annotations

import sys

import pytest

from sprocket.base.errors import UsageError
from sprocket.spark.pipelines.parts.folder import check_folder


@pytest.mark.parametrize("name", ["a b", "100%", "s3a://lake/x=1/é", "a#b", "-x", "a:b", "~"])
def test_names_that_all_read_alike_may_be(name: str) -> None:
    check_folder(name)


@pytest.mark.parametrize("name", ["a[1]", "a{b,c}", "a*", "a?", "50%25", "a%2Fb", "a\nb", "a\0b"])
def test_names_that_somebody_reads_otherwise_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="take for something else") as caught:
        check_folder(name)
    assert str(caught.value).isprintable()


@pytest.mark.skipif(sys.platform == "win32", reason="it is between folders there")
def test_a_backslash_is_refused() -> None:
    with pytest.raises(UsageError, match="take for something else"):
        check_folder("a\\b")


@pytest.mark.parametrize("name", ["", "  "])
def test_no_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="its name is empty"):
        check_folder(name)
