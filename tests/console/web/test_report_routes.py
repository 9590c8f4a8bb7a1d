"""Reports are files of one folder and nothing else, in a box without a way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from sprocket.console.web.report_routes import reports_in
from tests.console.browsing import Browser, browsed


def test_reports_are_listed_and_shown_in_a_sandbox(tmp_path: Path) -> None:
    folder, outside = tmp_path / "reports", tmp_path / "secret.html"
    (folder / "daily").mkdir(parents=True)
    (folder / "lag.html").write_text("<script>steal()</script>")
    (folder / "daily" / "volume.json").write_text("{}")
    (folder / "notes.txt").write_text("no report")
    outside.write_text("secret")
    (folder / "link.html").symlink_to(outside)

    async def story(browser: Browser) -> None:
        await browser.open("/reports")
        rows = browser.rows()
        assert sorted(row["name"] for row in rows) == ["daily/volume.json", "lag.html"]
        answer = await browser.http.get("/report-file?name=lag.html")
        assert answer.text == "<script>steal()</script>"
        policy = answer.headers.get_list("content-security-policy")
        assert len(policy) == 1
        assert "sandbox allow-scripts;" in policy[0]
        assert "allow-same-origin" not in policy[0]
        for name in ("../secret.html", str(outside), "link.html", "notes.txt", "", "a\0b", "daily"):
            refused = await browser.http.get("/report-file", params={"name": name})
            assert refused.status_code == 404, name

    browsed(story, reports=folder)


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    async def story(browser: Browser) -> None:
        await browser.open("/reports")
        assert "--reports" in browser.text()

    browsed(story, reports=tmp_path / "none")
    with pytest.raises(OSError, match="none"):
        reports_in(tmp_path / "none")
