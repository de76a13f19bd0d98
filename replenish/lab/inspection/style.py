"""How the page of an inspection looks: one style sheet, light and dark."""

STYLE = """
:root {
  color-scheme: light dark;
  --ground: #f6f5f1; --card: #ffffff; --edge: #dcd9d0; --text: #1c222c; --muted: #555d6b; --grid: #e7e5de;
  --srs: #1f5fc4; --reshuffling: #b4560f; --replacement: #0f7b5f; --identity: #a9306f; --law: #1c222c;
  --tint: #eef3fc;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #11141a; --card: #191e27; --edge: #313948; --text: #e8ebf1; --muted: #a9b3c3; --grid: #2a313e;
    --srs: #7fb2ff; --reshuffling: #f2a763; --replacement: #5fd3ae; --identity: #f390c6; --law: #f4f6fa;
    --tint: #1e2a3f;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--ground); color: var(--text);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
main { max-width: 1180px; margin: 0 auto; padding: 40px 24px 64px; }
h1 { font-size: clamp(1.7rem, 4.5vw, 2.3rem); line-height: 1.15; letter-spacing: -.015em; margin: 0 0 10px; }
h2 { font-size: 1.15rem; line-height: 1.3; margin: 0 0 4px; }
p { margin: 0 0 12px; max-width: 74ch; }
.muted, figcaption, .note { color: var(--muted); }
.facts {
  display: grid; gap: 16px; margin: 24px 0 32px; padding: 0; list-style: none;
  grid-template-columns: repeat(auto-fit, minmax(240px, 1fr));
}
.facts li, figure, .card {
  background: var(--card); border: 1px solid var(--edge); border-radius: 14px; padding: 20px 22px;
  margin: 0; min-width: 0;
}
.facts strong { display: block; font-size: 1.75rem; line-height: 1.2; letter-spacing: -.02em; color: var(--srs); }
.facts .other { color: var(--muted); display: block; font-size: .9rem; margin-top: 6px; }
.charts { display: grid; gap: 20px; grid-template-columns: repeat(2, minmax(0, 1fr)); margin: 0 0 20px; }
figure { display: flex; flex-direction: column; }
figure details { margin-top: auto; padding-top: 12px; }
figcaption { font-size: .95rem; margin: 10px 0 0; max-width: 74ch; }
.legend {
  display: flex; flex-wrap: wrap; gap: 2px 16px; margin: 0 0 8px; padding: 0; list-style: none; font-size: .87rem;
}
.legend li { display: flex; align-items: center; gap: 7px; }
.swatch { width: 28px; height: 12px; flex: none; }
.chart { display: block; width: 100%; height: auto; }
.chart text { font-size: 12px; fill: var(--muted); font-variant-numeric: tabular-nums; }
.chart text.level { font-size: 11.5px; fill: var(--text); paint-order: stroke; stroke: var(--card); stroke-width: 4px; }
.grid { stroke: var(--grid); stroke-width: 1; }
line.level { stroke: var(--muted); stroke-width: 1; stroke-dasharray: 2 4; }
.line { fill: none; stroke-width: 2.2; stroke-linejoin: round; }
.line.fine { stroke-width: 1.2; }
.line.law { stroke: var(--law); stroke-width: 2.6; stroke-linecap: round; stroke-dasharray: .1 5.4; }
.line.srs { stroke: var(--srs); } .line.reshuffling { stroke: var(--reshuffling); }
.line.replacement { stroke: var(--replacement); } .line.identity { stroke: var(--identity); }
.mark { stroke: var(--card); stroke-width: 1; }
.mark.srs { fill: var(--srs); } .mark.reshuffling { fill: var(--reshuffling); }
.mark.replacement { fill: var(--replacement); } .mark.identity { fill: var(--identity); }
.hover { fill: var(--text); fill-opacity: 0; }
.hover:hover { fill-opacity: .08; }
.card { margin: 0 0 20px; }
.scroll { overflow-x: auto; margin: 10px -22px 0; padding: 0 22px; }
details .scroll { max-height: 320px; overflow-y: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; font-variant-numeric: tabular-nums; }
th, td { padding: 7px 12px 7px 0; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--grid); }
th { font-weight: 600; }
th:last-child, td:last-child { padding-right: 0; }
tbody th, thead td { text-align: left; font-weight: 400; white-space: normal; min-width: 9.5em; }
thead th { color: var(--muted); vertical-align: bottom; white-space: normal; min-width: 6em; }
tbody th { position: sticky; left: 0; background: var(--card); }
tbody tr:last-child > * { border-bottom: 0; }
.note { margin: 12px 0 0; font-size: .92rem; }
details tbody th { min-width: 4em; }
details { font-size: .92rem; }
summary { cursor: pointer; color: var(--srs); padding: 4px 0; width: fit-content; }
summary:hover { text-decoration: underline; }
:focus-visible { outline: 3px solid var(--srs); outline-offset: 3px; border-radius: 4px; }
pre {
  background: var(--tint); border-radius: 10px; padding: 14px 16px; margin: 10px 0 12px;
  white-space: pre-wrap; overflow-wrap: anywhere;
  font: .9rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
}
@media (max-width: 860px) { .charts { grid-template-columns: minmax(0, 1fr); } }
@media (max-width: 560px) {
  main { padding: 28px 14px 48px; }
  .facts li, figure, .card { padding: 16px; }
  .scroll { margin: 10px -16px 0; padding: 0 16px; }
  .chart text { font-size: 17px; }
  .chart text.level { font-size: 16px; }
  .rows thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .rows table, .rows tbody { display: block; }
  .rows tr { display: grid; grid-template-columns: 1fr 1fr; gap: 2px 14px; padding: 10px 0; }
  .rows tr { border-bottom: 1px solid var(--grid); }
  .rows tr:last-child { border-bottom: 0; }
  .rows tbody th { grid-column: 1 / -1; font-weight: 600; position: static; }
  .rows th, .rows td { border: 0; padding: 0; text-align: left; }
  .rows td:empty { display: none; }
  .rows td::before { content: attr(data-column); display: block; color: var(--muted); font-size: .8rem; }
}
@media print { .charts { grid-template-columns: 1fr 1fr; } details { display: none; } }
"""
