//! The script and styles of charts: zoom along x, a shared crosshair, series shown alone, and data as CSV.
//!
//! The script draws ticks as `axis` does. What both decide by (prefixes of units, customary durations) is written into the
//! script from the tables of this crate, and a test compares the ticks of both in a browser. The script adds all that it
//! needs itself, and nothing that it changes is printed: a page without scripts, or on paper, is complete.

use crate::axis::ticks;
use crate::unit;

/// Returns the script. It is XML as [`SCRIPT`](super::style::SCRIPT) is.
pub(super) fn script() -> String {
    let units = unit::script_table();
    let (coarse, fine) = ticks::script_durations();
    // Comments and indentation would be a third of it.
    let lines = BODY.lines().map(str::trim_start).filter(|line| !line.is_empty() && !line.starts_with("//"));
    let body = lines.collect::<Vec<_>>().join("\n");
    format!("\nvar charted = (function(UNITS, DURATIONS, FINE){{\n{body}\n}})({units}, {coarse}, {fine});\n")
}

const BODY: &str = include_str!("charts.js");

pub(crate) const CSS: &str = r#"
.tools{display:flex;flex-wrap:wrap;align-items:baseline;gap:2px 14px;font-size:13px;color:var(--soft);margin:2px 0}
.tools button,.legend button{font:inherit;color:inherit;background:none;border:0;border-radius:4px;padding:2px 0;margin:0;min-height:24px;cursor:pointer;text-align:left}
.tools button{text-decoration:underline;text-underline-offset:2px}
.tools button:hover,.legend button:hover{color:var(--ink)}
.legend button{display:flex;align-items:center;gap:6px;overflow-wrap:anywhere}
.readout{flex:1 1 12em;margin:0;max-width:none;min-width:0;overflow-wrap:anywhere;color:var(--ink)}
.readout span{display:inline-block;margin-right:1.2em}
.spoken{position:absolute;width:1px;height:1px;margin:-1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.plot{touch-action:pan-y;cursor:crosshair;-webkit-user-select:none;user-select:none}
.plot:focus-visible,.tools button:focus-visible,.legend button:focus-visible{outline:2px solid var(--p0);outline-offset:2px}
.cross{stroke:var(--ink);stroke-width:1;pointer-events:none}
.chosen{fill:var(--p0);opacity:.16;pointer-events:none}
@media screen{.zoomed .still,.zoomed>svg>g:not(.drawn),.off{display:none}.legend button[aria-pressed=false]{text-decoration:line-through}
.legend button[aria-pressed=false] svg{opacity:.3}}
@media print{.tools,.spoken,.drawn,.cross,.chosen{display:none}}
"#;
