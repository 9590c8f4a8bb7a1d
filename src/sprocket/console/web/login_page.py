"""The page on which users log in: plain HTML, without scripts. Pure."""

from __future__ import annotations

from html import escape

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Log in · Sprocket</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 0; min-height: 100vh; display: grid;
  place-items: center; background: light-dark(#f4f6f8, #14181d);
  color: light-dark(#20262d, #e8ebee); }}
main {{ width: min(22rem, 90vw); padding: 1.8rem; border-radius: 10px;
  background: light-dark(#fff, #1c2228); border: 1px solid light-dark(#e1e5ea, #2c343c); }}
h1 {{ font-size: 1.25rem; margin: 0 0 .3rem; }} p {{ margin: 0 0 1rem; opacity: .75; }}
label {{ display: block; margin: .8rem 0 .2rem; }}
input {{ font: inherit; width: 100%; box-sizing: border-box; padding: .55rem .65rem;
  border-radius: 6px; border: 1px solid light-dark(#b9c2cc, #46525e); background: transparent;
  color: inherit; }}
button {{ font: inherit; margin-top: 1.2rem; width: 100%; padding: .6rem; border: 0;
  border-radius: 6px; background: #1f6aa5; color: #fff; cursor: pointer; }}
.fault {{ color: light-dark(#b3261e, #ff8a80); opacity: 1; margin: .9rem 0 0; }}
</style></head><body><main><h1>Sprocket</h1>
<p>These brokers know users. Log in with the keys of one; the console then asks in that user's
name.</p>
<form method="post" action="/login">
<input type="hidden" name="next" value="{next}">
<label for="user">Access key</label>
<input id="user" name="user" autocomplete="username" required autofocus maxlength="255"
  value="{user}">
<label for="key">Secret key</label>
<input id="key" name="key" type="password" autocomplete="current-password" required
  maxlength="1024">
{fault}<button type="submit">Log in</button></form></main></body></html>
"""


def login_page(*, next_path: str, user: str = "", fault: str | None = None) -> str:
    """The page.

    Args:
        next_path: where a user goes then.
        user: the name that was given before.
        fault: why the last attempt failed.
    """
    said = "" if fault is None else f'<p class="fault" role="alert">{escape(fault)}</p>'
    return _PAGE.format(next=escape(next_path), user=escape(user), fault=said)


def path_within(text: str | None) -> str:
    """A path of this site, whatever is given: the overview if it is none."""
    if not text or len(text) > 2_000 or not text.startswith("/") or text[1:2] in ("/", "\\"):
        return "/"
    return text if text.isprintable() and "\\" not in text else "/"
