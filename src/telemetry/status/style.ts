/** The style of the status page: no picture, no font and no script, light or dark as the reader's browser. */
export const style = `
:root {
  color-scheme: light dark;
  --ground: #f4f5f7; --card: #fff; --text: #1c2430; --quiet: #5b6675; --line: #dfe3e8; --head: #f9fafb;
  --good: #14713f; --good-ground: #dcf3e5; --bad: #a3231a; --bad-ground: #fde4e1; --warn: #7a5300; --warn-ground: #fdf0cf;
  --bar: #3a6ea5; --bar-second: #9db9d8; --bar-ground: #e3e7ec;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #12161c; --card: #1a2029; --text: #e3e8ef; --quiet: #98a3b3; --line: #2c3541; --head: #1f2630;
    --good: #7fd8a4; --good-ground: #153524; --bad: #ff9d94; --bad-ground: #46201d; --warn: #f0c667; --warn-ground: #3d3013;
    --bar: #6ea3dc; --bar-second: #38567a; --bar-ground: #2a323d;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.25rem; max-width: 78rem; background: var(--ground); color: var(--text);
  font: 15px/1.45 system-ui, "DejaVu Sans", sans-serif; }
header { display: flex; flex-wrap: wrap; gap: .35rem 1rem; align-items: baseline; margin-bottom: 1rem; }
h1 { font-size: 1.4rem; margin: 0; }
h2 { font-size: 1.05rem; margin: 0 0 .6rem; display: flex; flex-wrap: wrap; gap: 0 .8rem; align-items: baseline; }
h3 { font-size: .95rem; margin: 1rem 0 .4rem; }
p { margin: .3rem 0; }
small, .quiet, h2 small { color: var(--quiet); font-size: .85rem; font-weight: normal; }
section { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: 1rem; margin-bottom: 1rem;
  overflow-x: auto; }
dl.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: 1rem; margin: 0 0 1rem; }
dl.tiles div { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .7rem .9rem; }
dl.tiles dt { color: var(--quiet); font-size: .8rem; }
dl.tiles dd { margin: 0; font-size: 1.35rem; font-weight: 600; overflow-wrap: anywhere; }
dl.tiles dd small { display: block; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-size: .8rem; color: var(--quiet); font-weight: 600; background: var(--head); }
th, td { padding: .35rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
tbody tr:last-child td { border-bottom: 0; }
td.number, th.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
td.when { white-space: nowrap; }
td.id { min-width: 17.5rem; font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .85rem; overflow-wrap: anywhere; }
td.message { overflow-wrap: anywhere; min-width: 14rem; }
.badge { display: inline-block; border-radius: .3rem; padding: .05rem .45rem; font-size: .82rem; font-weight: 600; }
.good { color: var(--good); background: var(--good-ground); }
.bad { color: var(--bad); background: var(--bad-ground); }
.warn { color: var(--warn); background: var(--warn-ground); }
.plain { color: var(--quiet); background: var(--bar-ground); }
.pool { margin: .8rem 0; }
.pool svg { display: block; width: 100%; height: .6rem; margin: .25rem 0; border-radius: .3rem; }
.bar-ground { fill: var(--bar-ground); } .bar { fill: var(--bar); } .bar-second { fill: var(--bar-second); }
.bar-over { fill: var(--bad); }
form { display: flex; flex-wrap: wrap; gap: .5rem; margin: 0 0 .7rem; align-items: center; }
input, button { font: inherit; padding: .3rem .6rem; border: 1px solid var(--line); border-radius: .3rem;
  background: var(--ground); color: var(--text); max-width: 100%; }
a { color: inherit; }
nav { display: flex; flex-wrap: wrap; gap: 1rem; margin-top: .7rem; }
footer { color: var(--quiet); font-size: .85rem; }
@media (max-width: 40rem) {
  body { padding: .7rem; }
  table thead { display: none; }
  table tr { display: block; padding: .5rem 0; border-bottom: 1px solid var(--line); }
  table tbody tr:last-child { border-bottom: 0; }
  table td, table td.number { display: flex; gap: .8rem; border: 0; padding: .1rem 0; text-align: left;
    white-space: normal; }
  table td::before { content: attr(data-of); color: var(--quiet); font: .8rem/1.6 system-ui, sans-serif;
    flex: 0 0 6.5rem; }
  td.message, td.id { min-width: 0; }
}
`;
