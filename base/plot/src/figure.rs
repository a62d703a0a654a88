//! Parts shared by all charts: the figure around a drawing, legends, and the style of the n-th series.
//!
//! The position of a series in its chart, or a number chosen by the caller, is its *slot*: it selects
//! colour, dash, mark and texture.

use crate::text_width;
use crate::xml::{Xml, px};

/// A position in a drawing: pixels from the left and from the top.
pub(crate) type PixelPosition = (f64, f64);

/// The number of colours of the palette; later series repeat them with another dash and mark.
const COLOURS: usize = 7;
const DASHES: [&str; 5] = ["", "7 3", "2 3", "9 3 2 3", "4 2"];
const MARKS: usize = 5;

/// Widths in pixels of drawings for narrow and for medium screens. Text in a drawing that shrinks more
/// than a little is unreadable.
const NARROW_PX: f64 = 352.0;
const MIDDLE_PX: f64 = 700.0;

/// Minimum ratio of a drawing's width to a layout's for the layout to be written too.
const WIDER_FACTOR: f64 = 1.1;

/// The sample of a series in a legend; the number is the slot of the series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LegendKey {
    Line {
        slot: usize,
        dashed: bool,
        marked: bool,
    },
    PixelBox(usize),
    Mark(usize),
    Bar(usize),
    /// Tick that marks a target; it has no slot.
    Target,
}

impl LegendKey {
    fn slot(self) -> usize {
        match self {
            Self::Line { slot, .. } | Self::PixelBox(slot) | Self::Mark(slot) | Self::Bar(slot) => slot,
            Self::Target => 0,
        }
    }
}

/// Writes a figure with its title, content and notes; an empty title or note is left out. `data` is the document that
/// the page's script reads; empty if there are none.
pub(crate) fn write(
    xml: &mut Xml,
    title: &str,
    data: &str,
    notes: &[String],
    content: impl FnOnce(&mut Xml),
) {
    let attributes = [("data-chart", data.into())];
    xml.element("figure", &attributes[..usize::from(!data.is_empty())], |xml| {
        if !title.is_empty() {
            xml.text_element("figcaption", &[], title);
        }
        content(xml);
        for note in notes.iter().filter(|n| !n.is_empty()) {
            xml.text_element("p", &[("class", "note".into())], note);
        }
    });
}

/// Writes a drawing in this width and, if that is too wide for narrower screens, variants for them. The
/// page's styles show one of them.
pub(crate) fn for_screens(xml: &mut Xml, width: f64, draw: impl Fn(&mut Xml, f64)) {
    if width <= NARROW_PX * WIDER_FACTOR {
        return draw(xml, width);
    }
    let mut layout = |class: &str, width| {
        xml.element("div", &[("class", class.into())], |xml| draw(xml, width));
    };
    layout("wide", width);
    if width > MIDDLE_PX * WIDER_FACTOR {
        layout("middle", MIDDLE_PX);
        layout("narrow", NARROW_PX);
    } else {
        layout("middle narrow", NARROW_PX);
    }
}

/// Writes a drawing. Its name is an `aria-label` and not a `title` child, which would be a tooltip over
/// the whole drawing.
pub(crate) fn svg(
    xml: &mut Xml,
    (width, height): (f64, f64),
    name: &str,
    description: &str,
    content: impl FnOnce(&mut Xml),
) {
    framed_svg(xml, (width, height), name, description, "", content);
}

/// Writes a drawing with the position and range of its plot for the page's script.
pub(crate) fn framed_svg(
    xml: &mut Xml,
    (width, height): (f64, f64),
    name: &str,
    description: &str,
    frame: &str,
    content: impl FnOnce(&mut Xml),
) {
    let attributes = [
        ("class", "chart".into()),
        ("viewBox", format!("0 0 {} {}", px(width), px(height)).into()),
        ("width", width.into()),
        ("height", height.into()),
        ("role", "img".into()),
        ("aria-label", format!("{name}. {description}").into()),
        ("data-frame", frame.into()),
    ];
    let count = attributes.len() - usize::from(frame.is_empty());
    xml.element("svg", &attributes[..count], |xml| {
        xml.text_element("desc", &[], description);
        content(xml);
    });
}

/// Writes the words that replace a drawing without data.
pub(crate) fn no_data(xml: &mut Xml) {
    xml.text_element("p", &[("class", "empty".into())], "no data");
}

/// Writes the samples and names of series in a row above the drawing.
pub(crate) fn legend(xml: &mut Xml, keys: &[(&str, LegendKey)]) {
    xml.element("ul", &[("class", "legend".into())], |xml| {
        for (name, key) in keys {
            xml.element("li", &[], |xml| {
                write_sample(xml, *key);
                xml.text(name);
            });
        }
    });
}

fn write_sample(xml: &mut Xml, key: LegendKey) {
    let slot = key.slot();
    let attributes = [
        ("class", slot_class(slot).into()),
        ("viewBox", "0 0 26 12".into()),
        ("width", 26.0.into()),
        ("height", 12.0.into()),
        ("aria-hidden", "true".into()),
    ];
    xml.element("svg", &attributes, |xml| match key {
        LegendKey::Line { dashed, marked, .. } => {
            let dash = if dashed { dash(slot) } else { "" };
            let body = [("class", "line".into()), ("d", "M0 6H26".into()), ("stroke-dasharray", dash.into())];
            xml.shape("path", &body[..if dash.is_empty() { 2 } else { 3 }], "");
            if marked {
                mark(xml, slot, (13.0, 6.0), "");
            }
        }
        LegendKey::PixelBox(_) => {
            xml.shape("path", &[("class", "area".into()), ("d", "M2 2H24V12H2Z".into())], "");
            xml.shape("path", &[("class", "line".into()), ("d", "M2 2H24".into())], "");
        }
        LegendKey::Mark(_) => mark(xml, slot, (13.0, 6.0), ""),
        LegendKey::Bar(_) => bar(xml, slot, (6.0, 0.0, 14.0, 12.0), ""),
        LegendKey::Target => target(xml, (13.0, 6.0), 12.0, ""),
    });
}

/// Writes a target's tick around its centre.
pub(crate) fn target(xml: &mut Xml, (x, y): PixelPosition, height: f64, tooltip: &str) {
    let attributes = [
        ("class", "bar-target".into()),
        ("x", (x - 1.25).into()),
        ("y", (y - height / 2.0).into()),
        ("width", 2.5.into()),
        ("height", height.into()),
    ];
    xml.shape("rect", &attributes, tooltip);
}

/// Writes a bar (left, top, width, height) with the slot's texture.
pub(crate) fn bar(xml: &mut Xml, slot: usize, (x, y, width, height): (f64, f64, f64, f64), tooltip: &str) {
    let edges = [("x", x.into()), ("y", y.into()), ("width", width.into()), ("height", height.into())];
    let [a, b, c, d] = edges;
    let body = [("class", "bar".into()), a, b, c, d];
    xml.shape("rect", &body, tooltip);
    if !slot.is_multiple_of(4) {
        let [_, a, b, c, d] = body;
        let fill = format!("url(#texture-{})", slot % 4);
        xml.shape("rect", &[("class", "texture".into()), a, b, c, d, ("fill", fill.into())], "");
    }
}

/// Textures of bars, contained once in a page.
pub(crate) const TEXTURES: &str = r#"<svg width="0" height="0" class="defs" aria-hidden="true"><defs>
<pattern id="texture-1" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="1.6" height="6" class="ink"/></pattern>
<pattern id="texture-2" width="5" height="5" patternUnits="userSpaceOnUse"><circle cx="2.5" cy="2.5" r="1" class="ink"/></pattern>
<pattern id="texture-3" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)"><rect width="1.2" height="5" class="ink"/></pattern>
</defs></svg>
"#;

/// Returns the class that gives children the colour of the n-th series.
pub(crate) fn slot_class(slot: usize) -> String {
    format!("s{}", slot % COLOURS)
}

/// Returns the dash pattern of the n-th series, empty for a solid line. Series of the same colour have
/// different patterns.
pub(crate) fn dash(slot: usize) -> &'static str {
    DASHES[(slot + slot / COLOURS) % DASHES.len()]
}

/// Writes a mark with the shape of the n-th series.
pub(crate) fn mark(xml: &mut Xml, slot: usize, position: PixelPosition, tooltip: &str) {
    sized_mark(xml, slot, position, 1.0, tooltip);
}

/// Writes a mark that is `size` times as large as usual.
pub(crate) fn sized_mark(xml: &mut Xml, slot: usize, (x, y): PixelPosition, size: f64, tooltip: &str) {
    let Some(d) = mark_outline(slot, (x, y), size) else {
        let r = 3.2 * size;
        let attributes = [("class", "mark".into()), ("cx", x.into()), ("cy", y.into()), ("r", r.into())];
        return xml.shape("circle", &attributes, tooltip);
    };
    xml.shape("path", &[("class", "mark".into()), ("d", d.into())], tooltip);
}

/// Returns the path around a mark of the n-th series; `None` for a circle.
pub(crate) fn mark_outline(slot: usize, (x, y): PixelPosition, size: f64) -> Option<String> {
    let corners: &[PixelPosition] = match (slot + slot / COLOURS) % MARKS {
        0 => return None,
        1 => &[(-3.0, -3.0), (3.0, -3.0), (3.0, 3.0), (-3.0, 3.0)],
        2 => &[(0.0, -4.2), (4.0, 3.0), (-4.0, 3.0)],
        3 => &[(0.0, -4.4), (4.4, 0.0), (0.0, 4.4), (-4.4, 0.0)],
        _ => &[(0.0, 4.2), (4.0, -3.0), (-4.0, -3.0)],
    };
    let outline: Vec<String> =
        corners.iter().map(|(dx, dy)| format!("{} {}", px(x + dx * size), px(y + dy * size))).collect();
    Some(format!("M{}Z", outline.join("L")))
}

/// Writes a straight line with a class of the page's styles.
pub(crate) fn line(xml: &mut Xml, class: &str, from: PixelPosition, to: PixelPosition) {
    let ends = [("x1", from.0), ("y1", from.1), ("x2", to.0), ("y2", to.1)];
    let [a, b, c, d] = ends.map(|(name, value)| (name, value.into()));
    xml.shape("line", &[("class", class.into()), a, b, c, d], "");
}

/// Writes text, truncated at `room` pixels; the tooltip then contains all of it.
pub(crate) fn shortened_text(xml: &mut Xml, class: &str, at: PixelPosition, text: &str, room: f64) {
    write_short(xml, class, at, text, &text_width::fit(text, room));
}

/// Writes a name, shortened in the middle to `room` pixels; the tooltip then contains all of it.
pub(crate) fn shortened_name(xml: &mut Xml, class: &str, at: PixelPosition, name: &str, room: f64) {
    write_short(xml, class, at, name, &text_width::fit_name(name, room));
}

fn write_short(xml: &mut Xml, class: &str, (x, y): PixelPosition, text: &str, short: &str) {
    let attributes = [("class", class.into()), ("x", x.into()), ("y", y.into())];
    xml.element("text", &attributes, |xml| {
        if short != text {
            xml.text_element("title", &[], text);
        }
        xml.text(short);
    });
}
