// What is found in a page, run by the browser in the page that holds it in frames.

// Text of charts is at least this high, in pixels.
const TEXT_PX_MIN = 11;
// The least contrast of text against what is behind it (WCAG 2.2, 1.4.3).
const CONTRAST_MIN = 4.5;

function shown(element) {
  return element.getClientRects().length > 0 && element.checkVisibility();
}

function channels(colour) {
  return colour.match(/[\d.]+/g).map(Number);
}

// Relative luminance (WCAG 2.2).
function luminance(colour) {
  const [red, green, blue] = channels(colour).slice(0, 3).map((channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(view, element) {
  const style = view.getComputedStyle(element);
  const ink = luminance(element.tagName === "text" ? style.fill : style.color);
  let behind = element;
  while (behind !== null) {
    const colour = channels(view.getComputedStyle(behind).backgroundColor);
    if (colour.length === 3 || colour[3] === 1) { break; }
    behind = behind.parentElement;
  }
  const paper = behind === null ? 1 : luminance(view.getComputedStyle(behind).backgroundColor);
  return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
}

function overlap(one, other) {
  const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
  const down = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
  return across > 1 && down > 3;
}

function measureChart(view, chart, found) {
  const box = chart.getBoundingClientRect();
  const name = chart.getAttribute("aria-label").slice(0, 60);
  const scale = box.width / chart.viewBox.baseVal.width;
  if (box.right > view.innerWidth + 1 || box.left < -1) { found.outside.push(name); }
  const texts = Array.from(chart.querySelectorAll("text")).filter((text) => text.textContent !== "");
  const boxes = texts.map((text) => text.getBoundingClientRect());
  texts.forEach((text, at) => {
    const own = boxes[at], words = `${name}: ${text.lastChild.textContent}`;
    if (own.left < box.left - 1 || own.right > box.right + 1 || own.top < box.top - 1 || own.bottom > box.bottom + 1) {
      found.outside.push(words);
    }
    if (parseFloat(view.getComputedStyle(text).fontSize) * scale < TEXT_PX_MIN) { found.small.push(words); }
    if (/0\.000\d/.test(text.lastChild.textContent)) { found.noisy.push(words); }
    for (let before = Math.max(0, at - 200); before < at; before += 1) {
      if (overlap(own, boxes[before])) {
        found.overlapping.push(`${words} / ${texts[before].lastChild.textContent}`);
      }
    }
  });
  if (chart.querySelectorAll("text.mid:not(.title)").length < 2) { found.bare.push(name); }
}

function measureText(view, page, found) {
  const walker = page.createTreeWalker(page.querySelector("main"), NodeFilter.SHOW_TEXT);
  const range = page.createRange();
  while (walker.nextNode()) {
    const node = walker.currentNode, parent = node.parentElement;
    if (node.textContent.trim() === "" || parent.closest("title, desc, script") !== null || !shown(parent)) { continue; }
    if (contrast(view, parent) < CONTRAST_MIN) { found.faint.push(node.textContent.slice(0, 60)); }
    range.selectNodeContents(node);
    const scrolls = parent.closest(".table, pre") !== null;
    const beyond = (box) => box.right > view.innerWidth + 1 || box.left < -1;
    if (!scrolls && Array.from(range.getClientRects()).some(beyond)) { found.cut.push(node.textContent.slice(0, 60)); }
  }
}

// Whether what is wider than its box says so: in words where scripts run, by a shade everywhere.
function hasCue(view, box, isScripted) {
  const note = box.previousElementSibling;
  const isSaid = note !== null && note.className === "cut-note on" && shown(note);
  return (isSaid || !isScripted) && view.getComputedStyle(box).backgroundImage.includes("gradient");
}

function tells(view, page, chart, isScripted) {
  const mark = chart.querySelector(isScripted ? "[data-tip]" : ":not(text) > title");
  if (mark === null || !isScripted) { return mark !== null; }
  const box = mark.getBoundingClientRect();
  const at = { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2, bubbles: true };
  chart.dispatchEvent(new view.PointerEvent("pointermove", at));
  const tip = page.querySelector(".tip"), text = tip.hidden ? "" : tip.textContent;
  chart.dispatchEvent(new view.PointerEvent("pointerleave", { bubbles: true }));
  return text !== "" && tip.hidden;
}

function measure(frame) {
  const view = frame.contentWindow, page = frame.contentDocument;
  const isScripted = page.querySelector("script") !== null;
  const found = {
    width: view.innerWidth, isDark: view.matchMedia("(prefers-color-scheme: dark)").matches, isScripted,
    cut: [], small: [], silent: [], outside: [], squeezed: [], overlapping: [], noisy: [], bare: [], faint: [], dumb: [],
    repeated: [],
  };
  page.querySelectorAll("details").forEach((fold) => { fold.open = true; });
  view.dispatchEvent(new view.Event("resize"));
  found.content = page.documentElement.scrollWidth;
  page.querySelectorAll(".table, pre, figure").forEach((box) => {
    if (shown(box) && box.scrollWidth > box.clientWidth + 1 && !hasCue(view, box, isScripted)) {
      found.cut.push(box.textContent.slice(0, 60));
    }
  });
  measureText(view, page, found);
  const charts = Array.from(page.querySelectorAll("svg.chart")).filter(shown);
  charts.forEach((chart) => {
    measureChart(view, chart, found);
    if (!tells(view, page, chart, isScripted)) { found.dumb.push(chart.getAttribute("aria-label").slice(0, 60)); }
  });
  page.querySelectorAll("figure").forEach((figure) => {
    const note = figure.querySelector(":scope > .note");
    if (note === null || note.textContent.length < 20) { found.silent.push(figure.textContent.slice(0, 60)); }
    const lines = Array.from(figure.querySelectorAll("path.line[d]")).filter((line) => shown(line) && line.closest(".legend") === null);
    // Single points may be as near to each other as they like.
    const drawn = lines.map((line) => line.getAttribute("d")).filter((path) => /[LHV]/.test(path));
    if (new Set(drawn).size < drawn.length) { found.repeated.push(figure.textContent.slice(0, 60)); }
  });
  page.querySelectorAll("th, td").forEach((cell) => {
    if (shown(cell) && cell.textContent.length > 4 && cell.clientWidth < 28) { found.squeezed.push(cell.textContent); }
  });
  found.charts = charts.length;
  found.figures = Array.from(page.querySelectorAll("figure")).filter((figure) => figure.querySelector(".empty") === null).length;
  found.footer = page.querySelector("footer").textContent;
  return found;
}

addEventListener("load", () => {
  const all = Array.from(document.querySelectorAll("iframe")).map(measure);
  const result = document.createElement("p");
  result.textContent = `MEASURED${JSON.stringify(all)}MEASURED`;
  document.body.replaceChildren(result);
});
