"""The style sheet of the console. Pure."""

from __future__ import annotations

STYLE = """
:root { --line: #e1e5ea; --quiet: #64707c; --ground: #f5f7f9; --surface: #ffffff; --ink: #20262d; }
body.body--dark { --line: #2c343c; --quiet: #96a1ac; --ground: #14181d; --surface: #1b2127;
  --ink: #e6e9ec; }
body { background: var(--ground); color: var(--ink); font-family: system-ui, sans-serif;
  font-size: 14px; }
body.body--dark, body.body--dark .q-drawer, body.body--dark .q-layout { background: var(--ground); }
.nicegui-content { padding: 0; width: 100%; }
.top { background: var(--surface) !important; color: var(--ink) !important; min-height: 48px;
  padding: 4px 12px; align-items: center; gap: 8px; display: flex; flex-wrap: nowrap; }
.brand { font-weight: 650; font-size: 16px; color: inherit; text-decoration: none; }
.cluster { color: var(--quiet); font-size: 12.5px; overflow: hidden; text-overflow: ellipsis;
  white-space: nowrap; }
.user { display: flex; align-items: center; gap: 6px; } .user-name { font-weight: 550; }
.navigation { padding: 10px 8px !important; background: var(--surface) !important; }
.navigation nav { width: 100%; display: flex; flex-direction: column; gap: 1px; }
.entry { display: flex; align-items: center; gap: 12px; padding: 7px 10px; border-radius: 6px;
  color: var(--ink); text-decoration: none; }
.entry .q-icon { font-size: 19px; color: var(--quiet); }
.entry:hover { background: rgba(128, 140, 152, .12); }
.entry.here { background: rgba(31, 106, 165, .13); font-weight: 600; }
.entry.here .q-icon { color: var(--q-primary); }
.version { color: var(--quiet); font-size: 11.5px; padding: 14px 10px 4px; }
.page { width: 100%; max-width: 1500px; padding: 14px 18px 40px; box-sizing: border-box; }
.page-head { align-items: center; } .page-title { font-size: 20px; font-weight: 620; }
.page-body { width: 100%; gap: 16px; align-items: stretch; padding-top: 10px; }
.panel { background: var(--surface); border: 1px solid var(--line); border-radius: 8px;
  padding: 12px 14px; width: 100%; box-sizing: border-box; gap: 8px; display: flex;
  flex-direction: column; min-width: 0; }
.panel-title { font-size: 14.5px; font-weight: 600; }
.bar { display: flex; gap: 8px; align-items: center; flex-wrap: wrap; width: 100%; }
.grow { flex: 1 1 160px; min-width: 0; }
.quiet { color: var(--quiet); } .small { font-size: 12.5px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: 10px;
  width: 100%; }
.tile { background: var(--surface); border: 1px solid var(--line); border-radius: 8px;
  padding: 10px 14px; }
.tile-name { color: var(--quiet); font-size: 12.5px; }
.tile-value { font-size: 21px; font-weight: 600; font-variant-numeric: tabular-nums; }
.tile-more { color: var(--quiet); font-size: 12px; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(420px, 100%), 1fr));
  gap: 12px; width: 100%; }
.plot { height: 220px; width: 100%; }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: 3px 18px; width: 100%; }
.facts .fact-name { color: var(--quiet); }
.facts .fact-value { overflow-wrap: anywhere; white-space: pre-wrap; user-select: text; }
.q-btn--dense:not(.q-btn--round) { padding: 4px 10px !important; }
.q-table__card { background: transparent; box-shadow: none; color: inherit; }
.q-table th { font-size: 12px; color: var(--quiet); font-weight: 600; }
.q-table td { font-size: 13.5px; } .q-table td.number { font-variant-numeric: tabular-nums; }
.q-table td, .q-table th { padding: 4px 10px; } .q-table tbody td { height: 34px; }
.cell-code { font-family: ui-monospace, monospace; font-size: 12.5px; }
.q-table td.wide { white-space: normal; overflow-wrap: anywhere; min-width: 140px;
  max-width: 460px; }
a.cell-link, .link { color: var(--q-primary); text-decoration: none; font-weight: 550; }
body.body--dark a.cell-link, body.body--dark .link { color: #6db3e8; }
body.body--dark :is(.q-btn--outline, .q-btn--flat) { --q-primary: #6db3e8; --q-negative: #ff8a80; }
a.cell-link:hover { text-decoration: underline; }
a:focus-visible, button:focus-visible, .q-btn:focus-visible { outline: 2px solid var(--q-primary);
  outline-offset: 2px; }
.body-text { font-family: ui-monospace, monospace; font-size: 12.5px; white-space: pre-wrap;
  overflow-wrap: anywhere; max-height: 60vh; overflow: auto; width: 100%; margin: 0;
  padding: 10px 12px; box-sizing: border-box; border: 1px solid var(--line); border-radius: 6px;
  background: var(--ground); user-select: text; }
.empty { padding: 26px 12px; text-align: center; width: 100%; }
.empty-title { font-weight: 600; } .empty-more { color: var(--quiet); }
.problem { border-color: #b3261e !important; border-left-width: 4px !important; width: 100%;
  background: var(--surface); gap: 4px; box-shadow: none; }
.problem-title { font-weight: 600; } .problem-detail { overflow-wrap: anywhere; }
.dialog { min-width: min(520px, 92vw); max-width: 92vw; gap: 10px; }
.lines { max-height: 45vh; overflow: auto; width: 100%; }
.good { color: #2e7d4f; } .bad { color: #b3261e; } .warn { color: #a86412; }
body.body--dark .good { color: #6fc594; } body.body--dark .bad { color: #ff8a80; }
body.body--dark .warn { color: #f0b26b; }
@media (max-width: 600px) { .page { padding: 10px 10px 40px; } .panel { padding: 10px; }
  .facts { grid-template-columns: 1fr; } .facts .fact-value { margin-bottom: 6px; }
  .q-table td, .q-table th { padding: 4px 6px; } }
@media (prefers-reduced-motion: reduce) { * { transition: none !important; } }
"""
