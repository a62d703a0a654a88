//! The colours and fonts of pages. Both themes are CSS variables; a test checks that every colour has a contrast of 3
//! to 1 (graphics) or 4.5 to 1 (text) against its background, as WCAG 2.2 requires (1.4.3, 1.4.11).

/// The head of every page. Its content security policy makes the browser refuse to load anything.
pub(crate) const HEAD: &str = r#"<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta name="color-scheme" content="light dark"/>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"/>
"#;

/// The head of a page of a service, which sends the content security policy as a header.
pub(crate) const SERVED_HEAD: &str = r#"<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta name="color-scheme" content="light dark"/>
"#;

/// The palette follows Okabe and Ito's colours for colour-blind readers, darkened or lightened for contrast.
pub(crate) const CSS: &str = r#"
:root{--paper:#fff;--ink:#1d2530;--soft:#56616f;--line:#c3cad3;--grid:#e6e9ed;--fine:#f3f4f6;--panel:#f6f7f9;
--good:#0a7048;--warn:#8f5a00;--bad:#b8341b;
--p0:#0b6cb0;--p1:#cf5400;--p2:#008463;--p3:#b0508c;--p4:#a07400;--p5:#2a8fc4;--p6:#6b7280}
@media (prefers-color-scheme:dark){:root{--paper:#14181d;--ink:#e4e8ed;--soft:#a0abb8;--line:#4a5561;--grid:#2a313a;--fine:#1f252c;--panel:#1c2228;
--good:#52c795;--warn:#e3b040;--bad:#ff8a70;
--p0:#5aaeea;--p1:#f28a45;--p2:#35bd97;--p3:#dd8fbe;--p4:#d9b43c;--p5:#93d3f5;--p6:#a7b0bb}}
@media print{:root{--paper:#fff;--ink:#000;--soft:#444;--line:#aaa;--grid:#ddd;--fine:#eee;--panel:#f6f7f9;
--good:#0a7048;--warn:#8f5a00;--bad:#b8341b;
--p0:#0b6cb0;--p1:#cf5400;--p2:#008463;--p3:#b0508c;--p4:#a07400;--p5:#2a8fc4;--p6:#6b7280}
figure,.facts,tr{break-inside:avoid}h2{break-after:avoid}body{font-size:10.5pt}main{padding:0}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,"Noto Sans",sans-serif;font-variant-numeric:tabular-nums}
main{max-width:1008px;margin:0 auto;padding:36px 24px 64px}
h1{font-size:28px;line-height:1.2;margin:0;letter-spacing:-.01em;overflow-wrap:anywhere}
h2{font-size:19px;line-height:1.3;margin:44px 0 12px;overflow-wrap:anywhere}
p{margin:10px 0;max-width:46em;overflow-wrap:anywhere}
.lead{font-size:17px;color:var(--soft);margin:8px 0 0}
footer{margin-top:56px;padding-top:12px;border-top:1px solid var(--grid);color:var(--soft);font-size:13px;overflow-wrap:anywhere}
.whole{display:inline-block;max-width:100%;overflow-wrap:anywhere}
pre{background:var(--panel);padding:12px 16px;border-radius:6px;overflow-x:auto;font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
figure{margin:18px 0 22px}
.middle,.narrow{display:none}
@media print{.wide{display:none}.middle{display:block}.table,pre{overflow:visible;background:none}pre{white-space:pre-wrap;overflow-wrap:anywhere}table{font-size:8pt}
th,td{padding-right:8px}th{white-space:normal}.cut-note.on{display:none}}
@media screen and (max-width:960px){.wide{display:none}.middle{display:block}.middle>.chart{width:100%;max-width:760px}}
@media screen and (max-width:600px){.middle{display:none}.narrow{display:block}}
@media screen{.narrow>.chart{width:100%;max-width:440px}}
figcaption{font-weight:600;margin-bottom:6px;overflow-wrap:anywhere}
.note,.empty{color:var(--soft);font-size:13px;margin:4px 0}
.empty{padding:28px;text-align:center;background:var(--panel);border-radius:6px;max-width:none}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:2px 18px;margin:0 0 8px;padding:0;font-size:13px;color:var(--soft)}
.legend li{display:flex;align-items:center;gap:6px;overflow-wrap:anywhere}
.legend svg{flex:none}
.facts{display:flex;flex-wrap:wrap;gap:10px 40px;margin:20px 0}
.facts div{display:flex;flex-direction:column-reverse}
.facts dt{color:var(--soft);font-size:13px}
.facts dd{margin:0;font-size:26px;line-height:1.25;font-weight:600}
.contents ul{list-style:none;display:flex;flex-wrap:wrap;gap:4px 20px;margin:20px 0 0;padding:0;font-size:14px}
.contents a{color:var(--p0);text-decoration:none;overflow-wrap:anywhere}
.contents a:hover{text-decoration:underline}
@media print{.contents{display:none}}
.grid-of{display:grid;gap:0 28px}
.grid-of>div{min-width:0}
.grid-2{grid-template-columns:repeat(2,minmax(0,1fr))}
.grid-3{grid-template-columns:repeat(3,minmax(0,1fr))}
.grid-4{grid-template-columns:repeat(4,minmax(0,1fr))}
@media screen and (max-width:960px){.grid-3,.grid-4{grid-template-columns:repeat(2,minmax(0,1fr))}}
@media screen and (max-width:760px){.grid-of{grid-template-columns:minmax(0,1fr)}main{padding:20px 16px 40px}}
details{margin:14px 0}
summary{cursor:pointer;color:var(--soft);padding:4px 0}
summary:hover{color:var(--ink)}
.table{overflow-x:auto;margin:14px 0}
@media screen and (min-width:1040px){.table{margin-right:calc((1040px - 100vw)/2)}.grid-of .table{margin-right:0}}
.table,pre{--shade:rgba(90,105,125,.38);background:
linear-gradient(to right,var(--under,var(--paper)) 40%,transparent) left/44px 100% no-repeat local,
linear-gradient(to left,var(--under,var(--paper)) 40%,transparent) right/44px 100% no-repeat local,
linear-gradient(to right,var(--shade),transparent) left/16px 100% no-repeat scroll,
linear-gradient(to left,var(--shade),transparent) right/16px 100% no-repeat scroll,var(--under,var(--paper))}
pre{--under:var(--panel)}
.cut-note{display:none;color:var(--soft);font-size:13px;margin:0 0 2px}
.cut-note.on{display:block}
.tip{position:fixed;z-index:2;pointer-events:none;background:var(--ink);color:var(--paper);font-size:13px;padding:3px 8px;border-radius:4px;max-width:80vw}
.near{stroke:var(--ink);stroke-width:2;fill:var(--c)}
table{border-collapse:collapse;font-size:14px}
caption{text-align:left;font-weight:600;padding-bottom:6px}
th,td{padding:5px 18px 5px 0;text-align:left;vertical-align:baseline;border-bottom:1px solid var(--grid)}
th:last-child,td:last-child{padding-right:0}
th{color:var(--soft);font-weight:500;border-bottom-color:var(--line);white-space:nowrap}
td.word{min-width:8em;max-width:34em;overflow-wrap:break-word}
.long{display:inline-block;width:max-content;max-width:min(22em,36vw);white-space:normal;overflow-wrap:anywhere}
td>.long:first-child{display:block}
code{font:.92em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;background:var(--panel);padding:1px 4px;border-radius:4px}
@media screen and (max-width:700px){th:first-child,td:first-child{position:sticky;left:0;background:var(--paper);padding-right:10px}td.word:first-child{max-width:36vw}
th,td{padding-right:14px}}
.name{text-align:left;white-space:nowrap}
.num{text-align:right;white-space:nowrap}
th[tabindex]{cursor:pointer}
th[aria-sort=ascending]::after{content:" ↑"}
th[aria-sort=descending]::after{content:" ↓"}
.good .mark-of,.facts .good dd{color:var(--good)}.warn,.facts .warn dd{color:var(--warn)}.bad,.facts .bad dd{color:var(--bad)}
.mark-of{font-weight:700;margin-right:.35em}
.facts .warn dt,.facts .bad dt{color:var(--soft)}
.chart{display:block;max-width:100%;height:auto}
.chart text{font-size:12px;fill:var(--soft)}
.chart .mid{text-anchor:middle}.chart .end{text-anchor:end}
.chart .name,.chart .value{fill:var(--ink)}
.chart .bad-value{fill:var(--bad);font-weight:600}
.chart .limit-name{fill:var(--bad)}
.chart .marker-name{fill:var(--ink);font-weight:600;paint-order:stroke;stroke:var(--paper);stroke-width:4px;stroke-linejoin:round}
.grid{stroke:var(--grid)}.minor{stroke:var(--fine)}.axis{stroke:var(--line)}
.guide{stroke:var(--soft);stroke-dasharray:2 3}
.limit{stroke:var(--bad);stroke-width:1.5;stroke-dasharray:5 3}
.bar-target{fill:var(--ink)}
.stem{stroke:var(--c);stroke-width:1.5;opacity:.6}
.line{fill:none;stroke:var(--c);stroke-width:1.8;stroke-linejoin:round;stroke-linecap:butt}
.thin{stroke-width:1.1;opacity:.9}
.area{fill:var(--c);opacity:.22;stroke:none}
.mark{fill:var(--c);stroke:var(--paper);stroke-width:1}
.crowded .mark{stroke:none;opacity:.6}
.hit{fill:transparent}.hit:hover{fill:var(--c)}
.marker{fill:var(--paper);stroke:var(--ink);stroke-width:2.5}
.bar{fill:var(--c)}.texture{pointer-events:none}.ink{fill:var(--paper);opacity:.3}
.defs{position:absolute}
.s0{--c:var(--p0)}.s1{--c:var(--p1)}.s2{--c:var(--p2)}.s3{--c:var(--p3)}.s4{--c:var(--p4)}.s5{--c:var(--p5)}.s6{--c:var(--p6)}
.over{--c:var(--bad)}
"#;

/// A script that sorts a table by the column of the clicked heading, marks content wider than the screen
/// as scrollable, and opens folds for printing. It keeps options of commands unbroken, and shows the
/// value nearest to the pointer or finger. It contains neither `<` nor `&`, so that the page is also XML.
pub(crate) const SCRIPT: &str = r#"
var tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
document.body.appendChild(tip);
function measure(){
  document.querySelectorAll(".cut-note").forEach(function(note){
    var box = note.nextElementSibling;
    note.classList.toggle("on", box.scrollWidth > box.clientWidth + 1);
  });
}
function sortable(table){
  var body = table.tBodies[0];
  table.querySelectorAll("thead th").forEach(function(head, column){
    head.tabIndex = 0;
    function key(row){ var k = row.cells[column].dataset.key; return k === undefined ? row.cells[column].textContent : Number(k); }
    function sort(){
      var down = head.getAttribute("aria-sort") === "ascending";
      table.querySelectorAll("thead th").forEach(function(other){ other.removeAttribute("aria-sort"); });
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      var rows = Array.from(body.rows);
      rows.sort(function(a, b){
        var x = key(a), y = key(b), order = x > y ? 1 : y > x ? -1 : 0;
        return down ? -order : order;
      });
      rows.forEach(function(row){ body.appendChild(row); });
    }
    head.addEventListener("click", sort);
    head.addEventListener("keydown", function(event){ if (event.key === "Enter") sort(); });
  });
}
function pointed(chart){
  var marks = [], near = null;
  chart.querySelectorAll("title").forEach(function(title){
    var mark = title.parentNode;
    if (mark.tagName === "text") return;
    mark.dataset.tip = title.textContent;
    title.remove();
    marks.push(mark);
  });
  function distance(mark, event){
    if (mark.getClientRects().length === 0) return Infinity;
    var box = mark.getBoundingClientRect();
    var x = Math.max(box.left - event.clientX, 0, event.clientX - box.right);
    var y = Math.max(box.top - event.clientY, 0, event.clientY - box.bottom);
    return Math.hypot(x, y);
  }
  function hide(){
    if (near) near.classList.remove("near");
    near = null;
    tip.hidden = true;
  }
  function show(event){
    hide();
    var least = 30;
    marks.forEach(function(mark){
      var at = distance(mark, event);
      if (least > at) { least = at; near = mark; }
    });
    if (near === null) return;
    if (near.classList.contains("hit")) near.classList.add("near");
    tip.textContent = near.dataset.tip;
    tip.hidden = false;
    tip.style.left = Math.max(4, Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 4)) + "px";
    tip.style.top = Math.max(4, event.clientY - tip.offsetHeight - 10) + "px";
  }
  chart.addEventListener("pointermove", show);
  chart.addEventListener("pointerdown", show);
  chart.addEventListener("pointerleave", hide);
}
function whole(line){
  var words = line.textContent.split(/(?= )/).map(function(word){
    if (word.slice(0, 2) !== " -") return [word];
    var unbroken = document.createElement("span");
    unbroken.className = "whole";
    unbroken.textContent = word.slice(1);
    return [" ", unbroken];
  });
  line.replaceChildren.apply(line, words.flat());
}
function enhance(root){
  root.querySelectorAll("table").forEach(sortable);
  root.querySelectorAll(".table, pre").forEach(function(box){
    var note = document.createElement("p");
    note.className = "cut-note";
    note.textContent = "wider than the screen: scroll sideways →";
    box.parentNode.insertBefore(note, box);
  });
  root.querySelectorAll("footer p").forEach(whole);
  root.querySelectorAll("details").forEach(function(fold){ fold.addEventListener("toggle", measure); });
  root.querySelectorAll("svg.chart").forEach(pointed);
  if (typeof charted === "function") root.querySelectorAll("figure[data-chart]").forEach(charted);
  measure();
}
addEventListener("resize", measure);
var folded = [];
addEventListener("beforeprint", function(){
  folded = Array.from(document.querySelectorAll("details:not([open])"));
  folded.forEach(function(fold){ fold.open = true; });
});
addEventListener("afterprint", function(){
  folded.forEach(function(fold){ fold.open = false; });
});
enhance(document);
"#;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{charts, site};

    /// Relative luminance, WCAG 2.2.
    fn luminance(hex: &str) -> f64 {
        let full: String =
            if hex.len() == 3 { hex.chars().flat_map(|c| [c, c]).collect() } else { hex.to_owned() };
        let channel = |i: usize| {
            let c = f64::from(u8::from_str_radix(&full[2 * i..2 * i + 2], 16).unwrap()) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(0) + 0.7152 * channel(1) + 0.0722 * channel(2)
    }

    fn contrast(a: f64, b: f64) -> f64 {
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn every_theme_has_contrast() {
        let themes: Vec<&str> = CSS.split(":root{").skip(1).map(|t| t.split('}').next().unwrap()).collect();
        assert_eq!(themes.len(), 3, "light, dark, print");
        for theme in themes {
            let colour = |name: &str| {
                let at = theme.find(&format!("--{name}:#")).unwrap_or_else(|| panic!("{name} in {theme}"));
                luminance(theme[at..].split('#').nth(1).unwrap().split([';', '\n']).next().unwrap())
            };
            for text in ["ink", "soft", "good", "warn", "bad"] {
                assert!(contrast(colour(text), colour("paper")) >= 4.5, "{text} in {theme}");
            }
            for graphic in ["p0", "p1", "p2", "p3", "p4", "p5", "p6"] {
                assert!(contrast(colour(graphic), colour("paper")) >= 3.0, "{graphic} in {theme}");
            }
        }
    }

    #[test]
    fn constants_are_xml_and_load_nothing() {
        for markup in
            [CSS, SCRIPT, charts::CSS, &charts::script(), site::CSS, site::BEFORE_SCRIPT, site::SCRIPT]
        {
            assert!(!markup.contains(['&', '<']));
        }
        for text in [
            CSS,
            SCRIPT,
            HEAD,
            SERVED_HEAD,
            charts::CSS,
            &charts::script(),
            site::CSS,
            site::BEFORE_SCRIPT,
            site::SCRIPT,
        ] {
            assert!(!text.contains("http:") && !text.contains("https:") && !text.contains("@import"));
        }
    }
}
