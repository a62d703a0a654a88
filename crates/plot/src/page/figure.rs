//! What all charts share: the figure around a drawing, legends, and the look of the n-th series.

use crate::decimate::Place;
use crate::xml::{Xml, px};

/// How many colours the palette has; later series repeat them with another dash and mark.
const COLOURS: usize = 7;
const DASHES: [&str; 5] = ["", "7 3", "2 3", "9 3 2 3", "4 2"];
const MARKS: usize = 5;

/// Wide drawings do not get narrower than this.
const NARROWEST_PX: f64 = 720.0;

/// What stands for a series in a legend; the number is the series' slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Line { slot: usize, dashed: bool, marked: bool },
    Area(usize),
    Mark(usize),
    Bar(usize),
}

/// A figure with its title, content and notes (empty ones are left out).
pub(crate) fn write(xml: &mut Xml, title: &str, notes: &[String], content: impl FnOnce(&mut Xml)) {
    xml.within("figure", &[], |xml| {
        if !title.is_empty() {
            xml.text("figcaption", &[], title);
        }
        content(xml);
        for note in notes.iter().filter(|n| !n.is_empty()) {
            xml.text("p", &[("class", "note".into())], note);
        }
    });
}

/// A drawing. It is named by `aria-label`, not by a `title` child, which would be a tooltip over the whole drawing.
pub(crate) fn svg(
    xml: &mut Xml,
    (width, height): (f64, f64),
    name: &str,
    description: &str,
    content: impl FnOnce(&mut Xml),
) {
    // On a narrow screen a wide drawing scrolls rather than shrink until it cannot be read.
    let least = format!("min-width:{}px", px(width.min(NARROWEST_PX)));
    let attributes = [
        ("class", "chart".into()),
        ("style", least.into()),
        ("viewBox", format!("0 0 {} {}", px(width), px(height)).into()),
        ("width", width.into()),
        ("height", height.into()),
        ("role", "img".into()),
        ("aria-label", format!("{name}. {description}").into()),
    ];
    xml.within("svg", &attributes, |xml| {
        xml.text("desc", &[], description);
        content(xml);
    });
}

/// In place of a drawing that would show nothing.
pub(crate) fn no_data(xml: &mut Xml) {
    xml.text("p", &[("class", "empty".into())], "no data");
}

/// Keys and names in a row above the drawing.
pub(crate) fn legend(xml: &mut Xml, keys: &[(&str, Key)]) {
    xml.within("ul", &[("class", "legend".into())], |xml| {
        for (name, key) in keys {
            xml.within("li", &[], |xml| {
                write_key(xml, *key);
                xml.words(name);
            });
        }
    });
}

fn write_key(xml: &mut Xml, key: Key) {
    let (Key::Line { slot, .. } | Key::Area(slot) | Key::Mark(slot) | Key::Bar(slot)) = key;
    let attributes = [
        ("class", slot_class(slot).into()),
        ("viewBox", "0 0 26 12".into()),
        ("width", 26.0.into()),
        ("height", 12.0.into()),
        ("aria-hidden", "true".into()),
    ];
    xml.within("svg", &attributes, |xml| match key {
        Key::Line { dashed, marked, .. } => {
            let dash = if dashed { dash(slot) } else { "" };
            let body = [("class", "line".into()), ("d", "M0 6H26".into()), ("stroke-dasharray", dash.into())];
            xml.shape("path", &body[..if dash.is_empty() { 2 } else { 3 }], "");
            if marked {
                mark(xml, slot, (13.0, 6.0), "");
            }
        }
        Key::Area(_) => {
            xml.shape("path", &[("class", "area".into()), ("d", "M2 2H24V12H2Z".into())], "");
            xml.shape("path", &[("class", "line".into()), ("d", "M2 2H24".into())], "");
        }
        Key::Mark(_) => mark(xml, slot, (13.0, 6.0), ""),
        Key::Bar(_) => bar(xml, slot, (6.0, 0.0, 14.0, 12.0), ""),
    });
}

/// A bar (left, top, width, height) with the slot's texture.
pub(crate) fn bar(xml: &mut Xml, slot: usize, (x, y, width, height): (f64, f64, f64, f64), tooltip: &str) {
    let place = [("x", x.into()), ("y", y.into()), ("width", width.into()), ("height", height.into())];
    let [a, b, c, d] = place;
    let body = [("class", "bar".into()), a, b, c, d];
    xml.shape("rect", &body, tooltip);
    if !slot.is_multiple_of(4) {
        let [_, a, b, c, d] = body;
        let fill = format!("url(#texture-{})", slot % 4);
        xml.shape("rect", &[("class", "texture".into()), a, b, c, d, ("fill", fill.into())], "");
    }
}

/// Textures of bars, once per page.
pub(crate) const TEXTURES: &str = r#"<svg width="0" height="0" class="defs" aria-hidden="true"><defs>
<pattern id="texture-1" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="1.6" height="6" class="ink"/></pattern>
<pattern id="texture-2" width="5" height="5" patternUnits="userSpaceOnUse"><circle cx="2.5" cy="2.5" r="1" class="ink"/></pattern>
<pattern id="texture-3" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)"><rect width="1.2" height="5" class="ink"/></pattern>
</defs></svg>
"#;

/// The class that gives children the colour of the n-th series.
pub(crate) fn slot_class(slot: usize) -> String {
    format!("s{}", slot % COLOURS)
}

/// The dash of the n-th series; empty is solid. Differs between series of the same colour.
pub(crate) fn dash(slot: usize) -> &'static str {
    DASHES[(slot + slot / COLOURS) % DASHES.len()]
}

/// A mark of the n-th series' shape.
pub(crate) fn mark(xml: &mut Xml, slot: usize, place: Place, tooltip: &str) {
    sized_mark(xml, slot, place, 1.0, tooltip);
}

/// A mark `size` times as large as usual.
pub(crate) fn sized_mark(xml: &mut Xml, slot: usize, (x, y): Place, size: f64, tooltip: &str) {
    let corners: &[Place] = match (slot + slot / COLOURS) % MARKS {
        0 => {
            let r = 3.2 * size;
            let attributes = [("class", "mark".into()), ("cx", x.into()), ("cy", y.into()), ("r", r.into())];
            return xml.shape("circle", &attributes, tooltip);
        }
        1 => &[(-3.0, -3.0), (3.0, -3.0), (3.0, 3.0), (-3.0, 3.0)],
        2 => &[(0.0, -4.2), (4.0, 3.0), (-4.0, 3.0)],
        3 => &[(0.0, -4.4), (4.4, 0.0), (0.0, 4.4), (-4.4, 0.0)],
        _ => &[(0.0, 4.2), (4.0, -3.0), (-4.0, -3.0)],
    };
    let at = |&(dx, dy): &Place| format!("{} {}", px(x + dx * size), px(y + dy * size));
    let outline: Vec<String> = corners.iter().map(at).collect();
    let d = format!("M{}Z", outline.join("L"));
    xml.shape("path", &[("class", "mark".into()), ("d", d.into())], tooltip);
}
