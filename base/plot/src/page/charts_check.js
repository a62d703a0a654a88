// What a reader does with the charts of a page, and what must come of it.
function check(what, is){ if (!is) complain(what); }
function shown(svg){ return svg.getClientRects().length > 0; }
var figures = Array.from(document.querySelectorAll("figure[data-chart]"));
var first = figures[0], second = figures[1], band = figures[2], other = figures[3], bars = figures[4], dots = figures[5];
function svgOf(figure){ return Array.from(figure.querySelectorAll("svg.chart")).find(shown); }
function readout(figure){ return figure.querySelector(".readout").textContent.replace(/\s+/g, " ").trim(); }
function reset(figure){ return Array.from(figure.querySelectorAll(".tools button"))[1]; }
function at(svg, share){
  const f = svg.dataset.frame.split(" ").map(Number), box = svg.getBoundingClientRect();
  const scale = box.width / svg.viewBox.baseVal.width;
  return { clientX: box.left + scale * (f[0] + share * (f[1] - f[0])), clientY: box.top + scale * (f[2] + f[3]) / 2 };
}
function point(svg, kind, share, more){
  svg.dispatchEvent(new PointerEvent(kind, { bubbles: true, button: 0, pointerType: "mouse", ...at(svg, share), ...more }));
}
function drag(svg, from, until, more){
  point(svg, "pointerdown", from, more);
  point(svg, "pointermove", (from + until) / 2, more);
  point(svg, "pointermove", until, more);
  point(svg, "pointerup", until, more);
}
function key(target, name, more){
  target.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true, ...more }));
}
function labels(svg){
  return Array.from(svg.querySelectorAll("text.mid:not(.title)")).filter(shown).map((text) => text.textContent).join(" ");
}

// Markup: names are text, and the buttons are there.
check("hostile names ran", window.owned === undefined && document.querySelector("img") === null);
check("six charts", figures.length === 6);
check("every chart offers CSV", figures.every((figure) => figure.querySelector(".tools button").textContent === "CSV"));
check("reset is hidden", reset(first).hidden);

// CSV.
check("csv of the first: " + charted.csv(JSON.parse(first.dataset.chart)), charted.csv(JSON.parse(first.dataset.chart)) === CSV);
check("csv of bars", charted.csv(JSON.parse(bars.dataset.chart)) === BARS);
check("csv of dots", charted.csv(JSON.parse(dots.dataset.chart)) === "name,p (s),q (s),SLO (s)\nw,0.1,,0.2\n");
check("csv of a band", charted.csv(JSON.parse(band.dataset.chart)) === "series,time (s),latency (s),\"latency, lower edge (s)\"\nb,0,0.2,0.1\nb,10,0.4,0.2\n");
var thinned = JSON.parse(second.dataset.chart), rows = charted.csv(thinned).split("\n");
check("a decimated file says so: " + rows[0], rows[0] === `# decimated: ${rows.length - 3} of 5000 points; highest and lowest values are kept`);
check("and its name: " + thinned.file, thinned.file === "second-decimated.csv");
var saved = null, click = HTMLAnchorElement.prototype.click;
HTMLAnchorElement.prototype.click = function(){ saved = this; };
first.querySelector(".tools button").click();
check("the button saves a file", saved !== null && saved.download === "first.csv" && saved.href.startsWith("blob:"));
HTMLAnchorElement.prototype.click = click;

// Crosshair: snaps to a point, is shared by charts with the same x, and goes with the pointer.
var svg = svgOf(first);
point(svg, "pointermove", 0.31);
check("values at the pointer: " + readout(first), readout(first).startsWith("time 3s storage: 30ms =1+1,") && readout(first).includes("end: 20ms") && readout(first).endsWith("points: –"));
check("a shared line", [first, second, band].every((figure) => svgOf(figure).querySelectorAll(".cross").length === 1));
check("a band at its upper edge: " + readout(band), readout(band) === "time 3s b: 260ms");
check("another quantity has none", readout(other) === "" && svgOf(other).querySelector(".cross") === null);
check("the tip stays", document.querySelector(".tip") !== null);
point(svg, "pointerleave", 0.31);
check("it goes with the pointer", readout(first) === "" && document.querySelector(".cross") === null);

// Keys.
svg.focus();
check("charts have focus", document.activeElement === svg && svg.getAttribute("role") === "application");
key(svg, "ArrowRight");
check("the first point: " + readout(first), readout(first).startsWith("time 0s"));
key(svg, "ArrowRight"); key(svg, "ArrowRight"); key(svg, "ArrowLeft");
check("the next but one, and back: " + readout(first), readout(first).startsWith("time 1s"));
key(svg, "End");
check("the last: " + readout(first), readout(first).startsWith("time 10s") && readout(second).startsWith("time 10s"));
key(svg, "ArrowRight");
check("and not beyond", readout(first).startsWith("time 10s"));
check("nothing is said yet", document.querySelector(".spoken").textContent === "" && document.querySelector(".spoken").getAttribute("aria-live") === "polite");
key(svg, "Escape");
check("Esc takes the crosshair away", readout(first) === "");

// Zoom by dragging, reset by each way.
var before = labels(svg), html = () => svg.innerHTML.replace(/ data-whole="[^"]*"/g, ""), still = html();
drag(svg, 0.2, 0.4);
check("zoomed", svg.classList.contains("zoomed") && !reset(first).hidden);
check("ticks of the range: " + labels(svg), labels(svg) === "2.0 2.2 2.4 2.6 2.8 3.0 3.2 3.4 3.6 3.8 4.0");
check("the old ones are hidden", Array.from(svg.querySelectorAll(".still")).every((group) => !shown(group)));
check("series are drawn anew", svg.querySelectorAll("svg svg > .drawn").length === 3 && svg.querySelector("svg svg > .drawn > .line") !== null);
check("other charts stay", !svgOf(second).classList.contains("zoomed"));
key(svg, "Escape");
check("Esc resets", !svg.classList.contains("zoomed") && labels(svg) === before && svg.querySelector(".drawn") === null);
point(svg, "pointerleave", 0.4);
check("and nothing is left behind", html() === still);
drag(svg, 0.4, 0.2);
check("backwards too", svg.classList.contains("zoomed"));
svg.dispatchEvent(new MouseEvent("dblclick", { bubbles: true }));
check("a double click resets", !svg.classList.contains("zoomed"));
drag(svg, 0.2, 0.4, { pointerType: "touch" });
check("a finger zooms", svg.classList.contains("zoomed") && getComputedStyle(svg).touchAction === "pan-y");
reset(first).click();
check("the button resets", !svg.classList.contains("zoomed") && reset(first).hidden);
drag(svg, 0.2, 0.201);
check("a click is no drag", !svg.classList.contains("zoomed"));
point(svg, "pointerdown", 0.2); point(svg, "pointermove", 0.5); key(svg, "Escape"); point(svg, "pointerup", 0.5);
check("Esc gives a drag up", !svg.classList.contains("zoomed") && svg.querySelector(".chosen") === null);
key(svg, "Home"); key(svg, "ArrowRight"); key(svg, "ArrowRight"); key(svg, "+"); key(svg, "+");
check("keys zoom: " + labels(svg), svg.classList.contains("zoomed"));
key(svg, "End"); key(svg, "ArrowRight");
check("the crosshair stays in view: " + readout(first), /^time [234]s/.test(readout(first)));
key(svg, "-"); key(svg, "-"); key(svg, "-");
check("and back", !svg.classList.contains("zoomed"));
for (let i = 0; i < 60; i += 1) { key(svg, "+"); }
check("no end of zoom breaks it: " + labels(svg), labels(svg) !== "" && !svg.innerHTML.includes("NaN"));
key(svg, "Escape");

// A logarithmic axis, and many points.
var log = svgOf(other);
drag(log, 0.49, 1);
check("ticks on a log axis: " + labels(log), labels(log).split(" ").every((text) => ["10", "20", "50", "100"].includes(text)) && labels(log).includes("100"));
point(log, "pointermove", 0.3);
point(log, "pointermove", 0.01);
check("a step lasts until the next: " + readout(other), readout(other) === "latency 10ms ccdf: 10%");
key(log, "Escape"); key(log, "Escape");
drag(svgOf(second), 0.5, 0.52);
check("an area is drawn", svgOf(second).querySelector(".drawn .area") !== null);
key(svgOf(second), "Escape");

// Legend.
var keys = Array.from(first.querySelectorAll(".legend button")).filter(shown);
check("entries are buttons", keys.length === 3 && keys.every((button) => button.getAttribute("aria-pressed") === "true"));
var pressed = () => keys.map((button) => button.getAttribute("aria-pressed") === "true" ? "1" : "0").join("");
var drawn = () => Array.from(svg.querySelector("svg").children).map((group) => shown(group) ? "1" : "0").join("");
keys[1].click();
check("one alone: " + pressed() + drawn(), pressed() === "010" && drawn() === "010");
key(svg, "ArrowRight");
check("its values alone: " + readout(first), !readout(first).includes("storage"));
keys[0].click();
check("another alone", pressed() === "100");
keys[0].click();
check("all again", pressed() === "111" && drawn() === "111");
keys[2].dispatchEvent(new MouseEvent("click", { bubbles: true, shiftKey: true }));
check("one hidden", pressed() === "110" && drawn() === "110");
drag(svg, 0.2, 0.6);
check("hidden also in a part", Array.from(svg.querySelectorAll("svg svg > .drawn")).map((group) => shown(group) ? "1" : "0").join("") === "110");
key(keys[2], "Enter", { ctrlKey: true });
check("and shown, by keys", pressed() === "111");
key(svg, "Escape"); key(svg, "Escape");
var parts = Array.from(bars.querySelectorAll(".legend button")).filter(shown);
parts[1].click();
check("bars alone", Array.from(svgOf(bars).querySelectorAll("g.s0")).every((group) => !shown(group)));
parts[1].click();
check("bars again", Array.from(svgOf(bars).querySelectorAll("g.s0")).every(shown));
