// Ticks, as `axis` determines them.
function ten(e){ return Number("1e" + e); }
function floor10(value){ return Math.floor(Math.log10(value) + 1e-12); }
function ceil10(value){ return Math.ceil(Math.log10(value) - 1e-12); }
function scaled(k, e){ return 0 > e ? k / ten(-e) : k * ten(e); }
function linearTicks(lo, hi, count){
  var raw = (hi - lo) / Math.max(count, 1), exponent = floor10(raw), share = raw / scaled(1, exponent);
  var nice = [1, 2, 5].find(function(m){ return m >= share * (1 - 1e-9); });
  if (nice === undefined) { nice = 1; exponent += 1; }
  var step = scaled(nice, exponent), slack = step * 1e-6, values = [];
  var below = scaled(Math.floor(lo / step + 1e-9) * nice, exponent);
  var above = scaled(Math.ceil(hi / step - 1e-9) * nice, exponent);
  for (var k = 0, steps = Math.min(Math.round((above - below) / step), 999); steps >= k; k += 1) {
    var tick = below + k * step;
    if (lo - slack > tick || tick > hi + slack) continue;
    values.push(slack > Math.abs(tick) ? 0 : tick);
  }
  return { values: values, decimals: Math.max(0, -exponent) };
}
function within(values, lo, hi){
  return values.filter(function(tick){ return !(lo * (1 - 1e-9) > tick || tick > hi * (1 + 1e-9)); });
}
function powers(first, last, mantissas){
  var values = [];
  for (var e = first; last >= e; e += 1) mantissas.forEach(function(m){ values.push(scaled(m, e)); });
  return values;
}
function logTicks(lo, hi, count){
  var first = floor10(lo), last = ceil10(hi), decades = last - first;
  var stride = Math.max(1, Math.ceil(decades / Math.max(1, count)));
  var inside = within(powers(first, last, [1]), lo, hi).length;
  var few = count >= decades * 3 || !(decades > 2 || inside >= 3);
  var values = [];
  for (var e = first; last >= e; e += 1) {
    if (e % stride === 0) values = values.concat(powers(e, e, few ? [1, 2, 5] : [1]));
  }
  return within(values, lo, hi);
}
function durationTicks(lo, hi, count){
  function inside(durations){ return within(powers(floor10(Math.min(lo, 10)), 1, [1]).concat(durations), lo, hi); }
  var coarse = inside(DURATIONS), all = coarse.length >= 3 ? coarse : inside(FINE);
  var stride = Math.max(1, Math.ceil(all.length / (Math.max(1, count) + 2)));
  var one = all.findIndex(function(t){ return 1e-9 > Math.abs(t - 1); });
  var offset = Math.max(0, one) % stride;
  return all.filter(function(_, at){ return at >= offset ? (at - offset) % stride === 0 : false; });
}
function minorTicks(lo, hi){
  var first = floor10(lo), last = ceil10(hi);
  return last - first > 6 ? [] : within(powers(first, last, [2, 3, 4, 5, 6, 7, 8, 9]), lo, hi);
}
function prefixOf(unit, largest){
  var found = null;
  UNITS[unit].prefixes.forEach(function(p){ if (largest >= p[0] * (1 - 1e-9)) found = p; });
  found = found || UNITS[unit].prefixes[0];
  return { size: found[1], suffix: found[2] };
}
function trimmed(text){
  if (text.includes(".")) text = text.replace(/0+$/, "").replace(/\.$/, "");
  return text === "-0" ? "0" : text;
}
function significant(value){
  var magnitude = Math.abs(value);
  if (value === 0) return "0";
  if (1e-4 > magnitude || magnitude >= 1e7) {
    var parts = value.toExponential(3).split("e");
    return trimmed(parts[0]) + "e" + Number(parts[1]);
  }
  var decimals = 0;
  while (8 > decimals) { if (magnitude * ten(decimals) >= 1e3) break; decimals += 1; }
  return trimmed(value.toFixed(decimals));
}
function format(unit, value){
  if (value !== value) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "-∞";
  var prefix = prefixOf(unit, value === 0 ? 1 : Math.abs(value));
  return significant(value / prefix.size) + prefix.suffix;
}
function superscript(power){
  return significant(power).split("").map(function(c){ return c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]; }).join("");
}
function durationLabel(seconds){
  var size = [[86400, "d"], [3600, "h"], [60, "min"]].find(function(of){
    return seconds >= of[0] ? 1e-9 > seconds / of[0] % 1 : false;
  });
  return size === undefined ? format("Seconds", seconds) : seconds / size[0] + size[1];
}
function logLabel(unit, value){
  var exponent = floor10(value), isPower = 1e-6 > Math.abs(value / scaled(1, exponent) - 1);
  if (isPower) {
    if (unit === "Plain") if (-3 > exponent || exponent >= 15) return "10" + superscript(exponent);
    if (unit === "Percent") if (-4 > exponent) return "1 in " + format("Plain", ten(-exponent));
  }
  if (unit === "Seconds") if (value >= 60) return durationLabel(value);
  return format(unit, value);
}
function titled(label, unit){ return unit === "" ? label : label === "" ? unit : label + " (" + unit + ")"; }
function commonPrefix(unit, values){
  if (!["Seconds", "Bytes", "BytesPerSec", "PerSec"].includes(unit) || values.length === 0) return null;
  if (unit === "Seconds") if (values[values.length - 1] >= 60) return null;
  var middle = Math.floor(values.length / 2);
  var candidates = values.slice(middle).concat(values.slice(0, middle).reverse());
  var prefixes = candidates.map(function(value){ return prefixOf(unit, value); });
  return prefixes.find(function(prefix){
    return values.every(function(value){ var v = value / prefix.size; return !(0.0009 > v || v > 10000.1); });
  }) || null;
}
// The ticks of an axis between two values: [value, label, isMain], the minor ones, and the title.
function resolved(axis, lo, hi, count){
  var unit = axis.unit, onTicks, label, title, values, main;
  if (axis.log) {
    values = unit === "Seconds" ? hi > 100 ? durationTicks(lo, hi, count) : logTicks(lo, hi, count) : logTicks(lo, hi, count);
    if (2 > values.length) values = linearTicks(lo, hi, count).values.filter(function(t){ return t > 0; });
    var common = commonPrefix(unit, values), suffix = common ? common.suffix : "";
    label = function(value){
      return common ? significant(value / common.size) + (axis.label === "" ? suffix : "") : logLabel(unit, value);
    };
    title = titled(axis.label, axis.label === "" ? "" : suffix);
    main = function(value){ return DURATIONS.includes(value) || 1e-6 > Math.abs(value / scaled(1, floor10(value)) - 1); };
  } else {
    var largest = Math.max(Math.abs(lo), Math.abs(hi)), prefix = prefixOf(unit, largest), of = largest / prefix.size, power = 0;
    if (of !== 0) if (1e-3 > of || of >= 1e6) power = Math.floor(floor10(of) / 3) * 3;
    var size = prefix.size * scaled(1, power);
    var whole = unit === "Count" ? Math.max(1, Math.ceil(hi - lo)) : Infinity;
    var nice = linearTicks(lo / size, hi / size, Math.min(whole, count));
    onTicks = UNITS[unit].onTicks || axis.label === "";
    label = function(value){
      var bare = value === 0 ? unit === "Plain" || unit === "Count" : false;
      return bare ? "0" : (value / size).toFixed(nice.decimals) + (onTicks ? prefix.suffix : "");
    };
    values = nice.values.map(function(t){ return t * size; });
    var factor = power === 0 ? "" : "×10" + superscript(power) + " ";
    title = titled(axis.label, (factor + (onTicks ? "" : prefix.suffix)).trim());
    main = function(){ return true; };
  }
  return {
    ticks: values.map(function(value){ return [value, label(value), main(value)]; }),
    minor: axis.log ? minorTicks(lo, hi) : [], title: title
  };
}

// Where things are.
function onScale(axis, value){ return axis.log ? Math.log(value) : value; }
function offScale(axis, value){ return axis.log ? Math.exp(value) : value; }
function place(plot, svg){
  var f = svg.dataset.frame.split(" ").map(Number), x = plot.data.x, y = plot.data.y;
  var from = onScale(x, plot.view[0]), until = onScale(x, plot.view[1]);
  var low = onScale(y, f[4]), high = onScale(y, f[5]);
  return {
    left: f[0], right: f[1], top: f[2], bottom: f[3], count: f[6], yLo: f[4],
    base: y.log ? f[4] : Math.min(Math.max(0, f[4]), f[5]),
    x: function(v){ return f[0] + (onScale(x, v) - from) / (until - from) * (f[1] - f[0]); },
    y: function(v){ return f[3] - (onScale(y, v) - low) / (high - low) * (f[3] - f[2]); },
    value: function(px){ return offScale(x, from + (px - f[0]) / (f[1] - f[0]) * (until - from)); }
  };
}
function px(value){ return Math.round(Math.max(-1e7, Math.min(1e7, value)) * 10) / 10; }
function shape(parent, tag, attributes, text){
  var element = document.createElementNS(parent.namespaceURI, tag);
  Object.keys(attributes).forEach(function(name){ element.setAttribute(name, attributes[name]); });
  if (text !== undefined) element.textContent = text;
  return parent.appendChild(element);
}
function line(parent, name, x1, y1, x2, y2){
  return shape(parent, "line", { "class": name, x1: px(x1), y1: px(y1), x2: px(x2), y2: px(y2) });
}

// Drawing of a part of the x axis.
function runs(series){
  var all = [], run = [];
  for (var at = 0; series.p.length > at; at += series.size) {
    if (series.p[at] === null) { all.push(run); run = []; continue; }
    run.push(series.p.slice(at, at + series.size));
  }
  all.push(run);
  return all.filter(function(run){ return run.length > 0; });
}
// The points in view, and the nearest to both sides of it: others would have coordinates that drawings cannot represent.
function visible(run, view, join){
  if (join === "none") return run.filter(function(p){ return !(view[0] > p[0] || p[0] > view[1]); });
  function side(p){ return view[0] > p[0] ? -1 : p[0] > view[1] ? 1 : 0; }
  return run.filter(function(p, at){
    var near = [run[at - 1] || p, run[at + 1] || p];
    return side(p) === 0 || near.some(function(other){ return side(other) !== side(p); });
  });
}
function corners(points, join){
  var path = [];
  points.forEach(function(p, at){
    if (join === "step") if (at > 0) path.push([p[0], points[at - 1][1]]);
    path.push(p);
  });
  return "M" + path.map(function(p){ return px(p[0]) + " " + px(p[1]); }).join("L");
}
function drawSeries(plot, at, group, still, series){
  var points = 0, like = still.querySelector(".line"), isFilled = still.querySelector(".area") !== null;
  var isMarked = still.querySelectorAll(".mark").length >= series.runs.reduce(function(n, run){ return n + run.length; }, 0);
  var size = still.classList.contains("crowded") ? 0.6 : 1;
  series.runs.forEach(function(whole){
    var run = visible(whole, plot.view, series.join);
    var upper = run.map(function(p){ return [at.x(p[0]), at.y(p[1])]; });
    if (like) if (run.length > 1) {
      var d = corners(upper, series.join);
      if (isFilled) {
        var lower = run.map(function(p){
          var base = p[2] === undefined || p[2] === null ? at.base : p[2];
          return [at.x(p[0]), at.y(Math.max(base, at.yLo))];
        });
        var back = corners(lower, series.join).slice(1).split("L").reverse().join("L");
        shape(group, "path", { "class": "area", d: d + "L" + back + "Z" });
      }
      var drawn = shape(group, "path", { "class": like.getAttribute("class"), d: d });
      if (like.hasAttribute("stroke-dasharray")) drawn.setAttribute("stroke-dasharray", like.getAttribute("stroke-dasharray"));
    }
    var few = 60 > upper.length || series.join === "none";
    if (like) if (!(isMarked || (few ? series.join === "straight" : false))) return;
    upper.forEach(function(p){
      var to = "translate(" + px(p[0]) + " " + px(p[1]) + ")";
      if (series.mark === "") return shape(group, "circle", { "class": "mark", r: 3.2 * size, transform: to });
      shape(group, "path", { "class": "mark", d: series.mark, transform: to + " scale(" + size + ")" });
    });
  });
}
function drawAxis(plot, at, svg){
  var group = shape(svg, "g", { "class": "drawn" });
  var axis = resolved(plot.data.x, plot.view[0], plot.view[1], at.count), taken = [];
  function inside(value){ return !(plot.view[0] > value || value > plot.view[1]); }
  // A label that would touch another is left out; main ticks come first.
  function width(text){ return text.getBBox().width || text.textContent.length * 7; }
  function fits(text, from){
    var until = from + width(text);
    if (taken.every(function(other){ return other[0] >= until + 4 || from >= other[1] + 4; })) return taken.push([from, until]);
    text.remove();
  }
  axis.ticks.filter(function(t){ return t[2]; }).concat(axis.ticks.filter(function(t){ return !t[2]; })).forEach(function(tick){
    line(group, "grid", at.x(tick[0]), at.top, at.x(tick[0]), at.bottom);
    var text = shape(group, "text", { "class": "mid", x: px(at.x(tick[0])), y: at.bottom + 17 }, tick[1]);
    fits(text, at.x(tick[0]) - width(text) / 2);
  });
  axis.minor.forEach(function(value){ line(group, "minor", at.x(value), at.top, at.x(value), at.bottom); });
  if (axis.title !== "") {
    var height = svg.viewBox.baseVal.height;
    shape(group, "text", { "class": "title mid", x: px((at.left + at.right) / 2), y: height - 6 }, axis.title);
  }
  taken = [];
  plot.data.references.filter(function(r){ return inside(r[0]); }).forEach(function(r){
    line(group, r[2], at.x(r[0]), at.top, at.x(r[0]), at.bottom);
    var name = shape(group, "text", { "class": r[2] + "-name", y: at.top - 6 }, r[1]);
    var end = svg.viewBox.baseVal.width - width(name) - 2, from = Math.max(2, Math.min(at.x(r[0]) - width(name) / 2, end));
    name.setAttribute("x", px(from));
    fits(name, from);
  });
  plot.data.markers.filter(function(m){ return inside(m[0]); }).forEach(function(m){
    var x = at.x(m[0]), y = at.y(m[1]);
    shape(group, "circle", { "class": "marker", cx: px(x), cy: px(y), r: 5 });
    var name = shape(group, "text", { "class": "marker-name", y: px(Math.max(at.top + 12, y - 9)) }, m[2]);
    name.setAttribute("x", px(Math.max(at.left, Math.min(x + 8, at.right - width(name)))));
  });
  // Lines of the grid are behind the series.
  svg.insertBefore(group, svg.querySelector("svg"));
}
function draw(plot){
  plot.stops = null;
  var isFull = plot.view[0] === plot.data.x.lo ? plot.view[1] === plot.data.x.hi : false;
  plot.svgs.forEach(function(svg){
    svg.querySelectorAll(".drawn").forEach(function(old){ old.remove(); });
    svg.classList.toggle("zoomed", !isFull);
    var at = place(plot, svg), clip = svg.querySelector("svg"), stills = Array.from(clip.children);
    // Marks at the ends of the data may extend beyond the plot, but a line that goes on may not.
    var whole = clip.dataset.whole || clip.getAttribute("viewBox"), box = whole.split(" ").map(Number);
    clip.dataset.whole = whole;
    if (!isFull) { box[0] = at.left; box[2] = at.right - at.left; }
    clip.setAttribute("viewBox", box.join(" "));
    clip.setAttribute("x", box[0]);
    clip.setAttribute("width", box[2]);
    if (isFull) return;
    plot.data.series.forEach(function(series, index){
      var group = shape(clip, "g", { "class": stills[index].getAttribute("class") + " drawn" });
      drawSeries(plot, at, group, stills[index], series);
    });
    drawAxis(plot, at, svg);
  });
  plot.reset.hidden = isFull;
  if (plot.redone) plot.redone();
  if (isFull) if (document.activeElement === document.body) if (plot.last) plot.last.focus({ preventScroll: true });
}
function zoom(plot, from, until){
  var x = plot.data.x, lo = onScale(x, x.lo), hi = onScale(x, x.hi), least = (hi - lo) / 1e4;
  var a = Math.max(lo, Math.min(onScale(x, from), onScale(x, until)));
  var b = Math.min(hi, Math.max(onScale(x, from), onScale(x, until)));
  if (least > b - a) { var middle = (a + b) / 2; a = Math.max(lo, middle - least / 2); b = Math.min(hi, a + least); }
  plot.view = [lo >= a ? x.lo : offScale(x, a), b >= hi ? x.hi : offScale(x, b)];
  draw(plot);
  if (plot.x !== null) cross(plot, plot.x);
}
function unzoom(plot){ zoom(plot, plot.data.x.lo, plot.data.x.hi); }

// The crosshair.
function isOn(plot, at){ return plot.on === null || plot.on.has(at); }
function stops(plot){
  if (plot.stops) return plot.stops;
  var all = new Set();
  plot.data.series.forEach(function(series, at){
    if (isOn(plot, at)) series.runs.forEach(function(run){ run.forEach(function(p){ all.add(p[0]); }); });
  });
  var inside = Array.from(all).filter(function(x){ return !(plot.view[0] > x || x > plot.view[1]); });
  plot.stops = inside.sort(function(a, b){ return a - b; });
  return plot.stops;
}
// The value of a series as it is drawn; null where it is not.
function valueAt(plot, series, x){
  var best = null, xAxis = plot.data.x, yAxis = plot.data.y;
  series.runs.forEach(function(run){
    run.forEach(function(p, at){
      if (p[0] === x) best = p[1];
      var next = run[at + 1];
      if (next === undefined || series.join === "none") return;
      if (!(x > p[0]) || !(next[0] > x)) return;
      if (series.join === "step") { best = p[1]; return; }
      var share = (onScale(xAxis, x) - onScale(xAxis, p[0])) / (onScale(xAxis, next[0]) - onScale(xAxis, p[0]));
      best = offScale(yAxis, onScale(yAxis, p[1]) + share * (onScale(yAxis, next[1]) - onScale(yAxis, p[1])));
    });
  });
  return best;
}
function cross(plot, x){
  plot.x = x;
  plot.svgs.forEach(function(svg){
    svg.querySelectorAll(".cross").forEach(function(old){ old.remove(); });
    if (x === null || plot.view[0] > x || x > plot.view[1]) return;
    var at = place(plot, svg);
    line(svg, "cross", at.x(x), at.top, at.x(x), at.bottom);
  });
  var words = [];
  if (x !== null) {
    words.push((plot.data.x.label || "x") + " " + format(plot.data.x.unit, x));
    plot.data.series.forEach(function(series, index){
      if (!isOn(plot, index)) return;
      var value = valueAt(plot, series, x), text = value === null ? "–" : format(plot.data.y.unit, value);
      words.push((series.name || plot.data.y.label || "y") + ": " + text);
    });
  }
  // The room stays, so that the page does not move under the pointer.
  plot.readout.style.minHeight = plot.readout.offsetHeight + "px";
  plot.readout.replaceChildren.apply(plot.readout, words.flatMap(function(word){
    var span = document.createElement("span");
    span.textContent = word;
    return [span, " "];
  }));
}
function peers(plot){
  return Array.from(document.querySelectorAll("figure[data-chart]")).map(function(figure){ return figure.plot; }).filter(function(other){
    if (other === plot) return true;
    if (other === undefined || plot.data.x.label === "") return false;
    return other.data.x.label === plot.data.x.label ? other.data.x.unit === plot.data.x.unit : false;
  });
}
function crossAll(plot, x){ peers(plot).forEach(function(other){ cross(other, x); }); }
// Readers hear where the keys have led, once they rest.
var spoken = document.createElement("p"), speech = null;
spoken.className = "spoken";
spoken.setAttribute("role", "status");
spoken.setAttribute("aria-live", "polite");
document.body.appendChild(spoken);
function speak(text){
  clearTimeout(speech);
  speech = setTimeout(function(){ spoken.textContent = text; }, 300);
}
function nearest(all, x, axis){
  var best = null;
  all.forEach(function(stop){
    var d = Math.abs(onScale(axis, stop) - onScale(axis, x));
    if (best === null || best[0] > d) best = [d, stop];
  });
  return best === null ? null : best[1];
}
function keyed(plot, event){
  var all = stops(plot), now = plot.x === null ? -1 : all.indexOf(nearest(all, plot.x, plot.data.x)), last = all.length - 1;
  var far = event.shiftKey ? 10 : 1, to = null, middle = plot.x === null ? null : plot.x;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "ArrowRight") to = now === -1 ? 0 : now + far;
  else if (event.key === "ArrowLeft") to = now === -1 ? last : now - far;
  else if (event.key === "Home") to = 0;
  else if (event.key === "End") to = last;
  else if (event.key === "Escape") {
    if (plot.drag) stopDrag(plot);
    else if (plot.reset.hidden) crossAll(plot, null);
    else { unzoom(plot); speak("Zoom reset"); }
  } else if (["+", "=", "-"].includes(event.key)) {
    var x = plot.data.x, lo = onScale(x, plot.view[0]), hi = onScale(x, plot.view[1]);
    var at = middle === null ? (lo + hi) / 2 : Math.max(lo, Math.min(hi, onScale(x, middle)));
    var by = event.key === "-" ? 2 : 0.5;
    var a = at - (at - lo) * by, b = at + (hi - at) * by, first = onScale(x, x.lo), end = onScale(x, x.hi);
    // What does not fit on one side is added to the other.
    zoom(plot, offScale(x, Math.max(first, a - Math.max(0, b - end))), offScale(x, Math.min(end, b + Math.max(0, first - a))));
    speak("From " + format(x.unit, plot.view[0]) + " to " + format(x.unit, plot.view[1]));
  } else return;
  event.preventDefault();
  if (to === null || last === -1) return;
  crossAll(plot, all[Math.max(0, Math.min(last, to))]);
  speak(plot.readout.textContent);
}

// The pointer.
function pointerAt(svg, event){
  var box = svg.getBoundingClientRect();
  return (event.clientX - box.left) * svg.viewBox.baseVal.width / box.width;
}
function stopDrag(plot){
  if (plot.drag) plot.drag.end();
  plot.drag = null;
}
function pointing(plot, svg){
  function isInside(event){
    var at = place(plot, svg), box = svg.getBoundingClientRect();
    var x = pointerAt(svg, event), y = (event.clientY - box.top) * svg.viewBox.baseVal.height / box.height;
    return !(at.left - 4 > x || x > at.right + 4 || at.top - 4 > y || y > at.bottom + 4);
  }
  function look(event){
    if (plot.drag) return;
    if (!isInside(event)) return crossAll(plot, null);
    crossAll(plot, nearest(stops(plot), place(plot, svg).value(pointerAt(svg, event)), plot.data.x));
  }
  svg.addEventListener("pointermove", look);
  svg.addEventListener("pointerleave", function(event){ if (event.pointerType !== "touch") if (!plot.drag) crossAll(plot, null); });
  svg.addEventListener("blur", function(){ crossAll(plot, null); });
  svg.addEventListener("dblclick", function(){ unzoom(plot); });
  svg.addEventListener("keydown", function(event){ keyed(plot, event); });
  svg.addEventListener("pointerdown", function(event){
    plot.last = svg;
    look(event);
    if (event.button !== 0 || !isInside(event)) return;
    stopDrag(plot);
    var at = place(plot, svg), start = pointerAt(svg, event), box = null;
    function limited(x){ return Math.max(at.left, Math.min(at.right, x)); }
    function move(event){
      var now = pointerAt(svg, event);
      if (box === null) { if (5 > Math.abs(now - start)) return; box = shape(svg, "rect", { "class": "chosen", y: at.top, height: at.bottom - at.top }); }
      box.setAttribute("x", px(limited(Math.min(start, now))));
      box.setAttribute("width", px(Math.abs(limited(now) - limited(start))));
    }
    function up(event){
      var now = limited(pointerAt(svg, event)), isChosen = box !== null;
      stopDrag(plot);
      if (isChosen) if (Math.abs(now - limited(start)) > 4) zoom(plot, at.value(limited(start)), at.value(now));
    }
    function cancel(){ stopDrag(plot); }
    addEventListener("pointermove", move);
    addEventListener("pointerup", up);
    addEventListener("pointercancel", cancel);
    plot.drag = { end: function(){
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", up);
      removeEventListener("pointercancel", cancel);
      if (box) box.remove();
    } };
  });
}

// The legend. A click shows a series alone, the next one all; with a modifier it is switched.
function legends(plot, names, groups){
  function apply(){
    plot.stops = null;
    if (plot.on !== null) if (plot.on.size === 0 || plot.on.size === names.length) plot.on = null;
    plot.buttons.forEach(function(pair){ pair[0].setAttribute("aria-pressed", String(isOn(plot, pair[1]))); });
    names.forEach(function(_, at){ groups(at).forEach(function(group){ group.classList.toggle("off", !isOn(plot, at)); }); });
  }
  function choose(at, isSwitch){
    if (isSwitch) {
      var on = plot.on || new Set(names.keys());
      if (!on.delete(at)) on.add(at);
      plot.on = on;
    } else if (plot.on !== null) plot.on = plot.on.size === 1 ? plot.on.has(at) ? null : new Set([at]) : new Set([at]);
    else plot.on = new Set([at]);
    apply();
    if (plot.view) if (plot.x !== null) cross(plot, plot.x);
  }
  var listed = Array.from(names.keys()).filter(function(at){ return names[at] !== ""; });
  plot.figure.querySelectorAll(".legend").forEach(function(legend){
    listed.forEach(function(at, row){
      var item = legend.children[row], button = document.createElement("button");
      if (item === undefined) return;
      button.type = "button";
      button.title = "Show alone, or all again; with Shift or Ctrl: show or hide";
      button.append.apply(button, Array.from(item.childNodes));
      item.appendChild(button);
      button.addEventListener("click", function(event){ choose(at, event.shiftKey || event.ctrlKey || event.metaKey); });
      button.addEventListener("keydown", function(event){
        if (![" ", "Enter"].includes(event.key) || !(event.shiftKey || event.ctrlKey || event.metaKey)) return;
        event.preventDefault();
        if (!event.repeat) choose(at, true);
      });
      plot.buttons.push([button, at]);
    });
  });
  plot.redone = apply;
  apply();
}

// The room for labels differs between layouts.
addEventListener("resize", function(){
  document.querySelectorAll("figure[data-chart]").forEach(function(figure){
    if (figure.plot) if (!figure.plot.reset.hidden) draw(figure.plot);
  });
});

function csv(data){
  if (data.csv !== undefined) return data.csv;
  return data.head + data.series.map(function(series){
    return runs(series).flat().map(function(p){
      return [series.field].concat(p.map(function(v){ return v === null ? "" : String(v); })).join(",") + "\n";
    }).join("");
  }).join("");
}
function save(data){
  var url = URL.createObjectURL(new Blob([csv(data)], { type: "text/csv" })), link = document.createElement("a");
  link.href = url;
  link.download = data.file;
  link.click();
  setTimeout(function(){ URL.revokeObjectURL(url); }, 10000);
}
function button(parent, text, name, action){
  var made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.setAttribute("aria-label", name);
  made.addEventListener("click", action);
  parent.appendChild(made);
  return made;
}
function charted(figure){
  var data = JSON.parse(figure.dataset.chart), tools = document.createElement("div");
  var caption = figure.querySelector("figcaption"), title = caption ? caption.textContent : "this chart";
  var plot = { figure: figure, data: data, on: null, buttons: [], drag: null, last: null };
  tools.className = "tools";
  button(tools, "CSV", "Data of " + title + " as CSV", function(){ save(data); });
  var layouts = figure.querySelectorAll(":scope > .note");
  figure.insertBefore(tools, layouts.length > 0 ? layouts[0] : null);
  if (data.series === undefined) {
    if (data.parts > 1) if (7 >= data.parts) legends(plot, Array.from({ length: data.parts }, function(_, at){ return "part " + at; }), function(at){
      return Array.from(figure.querySelectorAll("svg.chart g.s" + at));
    });
    return;
  }
  figure.plot = plot;
  plot.view = [data.x.lo, data.x.hi];
  plot.x = null;
  plot.svgs = Array.from(figure.querySelectorAll("svg.chart"));
  data.series.forEach(function(series){ series.runs = runs(series); });
  plot.reset = button(tools, "Reset zoom", "Reset zoom of " + title, function(){ unzoom(plot); });
  plot.reset.hidden = true;
  plot.readout = document.createElement("p");
  plot.readout.className = "readout";
  tools.appendChild(plot.readout);
  plot.svgs.forEach(function(svg){
    svg.classList.add("plot");
    svg.tabIndex = 0;
    // Without this role, readers keep the arrow keys for themselves.
    svg.setAttribute("role", "application");
    svg.setAttribute("aria-roledescription", "chart");
    svg.setAttribute("aria-keyshortcuts", "ArrowLeft ArrowRight Home End + - Escape");
    pointing(plot, svg);
  });
  if (data.series.length > 1) legends(plot, data.series.map(function(series){ return series.name; }), function(at){
    return plot.svgs.flatMap(function(svg){
      var groups = Array.from(svg.querySelector("svg").children), count = data.series.length;
      return groups.filter(function(_, index){ return index % count === at; });
    });
  });
}
charted.ticks = resolved;
charted.csv = csv;
charted.format = format;
return charted;
