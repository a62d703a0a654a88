//! Names of reference lines (in the margins) and of markers (beside them).

use super::frame::Frame;
use super::{Across, Chart, Marker, Reference};
use crate::decimate::Place;
use crate::text;
use crate::xml::Xml;

const LINE_PX: f64 = 14.0;

/// Lines with their names: to the right of horizontal ones, above vertical ones.
pub(crate) fn write_references(xml: &mut Xml, chart: &Chart, frame: &Frame) {
    let mut across: Vec<Named<'_>> = Vec::new();
    let mut down: Vec<Named<'_>> = Vec::new();
    for reference in &chart.references {
        let (axis, px, list): (_, fn(&Frame, f64) -> f64, _) = match reference.across {
            Across::X => (&chart.x, Frame::x_px, &mut down),
            Across::Y => (&chart.y, Frame::y_px, &mut across),
        };
        let place = if axis.accepts(reference.value) { px(frame, reference.value) } else { f64::NAN };
        let inside = match reference.across {
            Across::X => (frame.left - 0.5..=frame.right + 0.5).contains(&place),
            Across::Y => (frame.top - 0.5..=frame.bottom + 0.5).contains(&place),
        };
        if inside {
            list.push(Named { place, reference });
        }
    }
    for name in &across {
        frame.across(xml, name.class("limit", "guide"), name.place);
    }
    for name in &down {
        frame.down(xml, name.class("limit", "guide"), name.place);
    }
    write_across_names(xml, frame, across);
    write_down_names(xml, frame, down);
}

/// A reference line and where it lies across its axis.
struct Named<'a> {
    place: f64,
    reference: &'a Reference,
}

impl Named<'_> {
    fn class(&self, limit: &'static str, guide: &'static str) -> &'static str {
        if self.reference.quiet { guide } else { limit }
    }

    fn write(&self, xml: &mut Xml, at: Place, room: f64) {
        name_at(xml, self.class("limit-name", "guide-name"), at, &self.reference.label, room);
    }
}

fn write_across_names(xml: &mut Xml, frame: &Frame, mut names: Vec<Named<'_>>) {
    names.sort_by(|a, b| a.place.total_cmp(&b.place));
    let wanted: Vec<f64> = names.iter().map(|n| n.place).collect();
    let room = frame.width - frame.right - 6.0;
    for (name, y) in names.iter().zip(spread(&wanted, LINE_PX, frame.top, frame.bottom)) {
        name.write(xml, (frame.right + 5.0, y + 4.0), room);
    }
}

fn write_down_names(xml: &mut Xml, frame: &Frame, mut names: Vec<Named<'_>>) {
    names.sort_by(|a, b| a.place.total_cmp(&b.place));
    let share = (frame.right - frame.left) / names.len().max(1) as f64;
    let mut free_from = 2.0;
    for name in names {
        let room = text::width(&name.reference.label).min(share);
        let start = (name.place - room / 2.0).min(frame.width - room - 2.0).max(free_from);
        free_from = start + room + 8.0;
        name.write(xml, (start, frame.top - 6.0), room + 1.0);
    }
}

/// A name shortened to `room`, with the whole of it in the tooltip then.
fn name_at(xml: &mut Xml, class: &str, (x, y): Place, name: &str, room: f64) {
    let short = text::fit(name, room);
    let attributes = [("class", class.into()), ("x", x.into()), ("y", y.into())];
    xml.within("text", &attributes, |xml| {
        if short != name {
            xml.text("title", &[], name);
        }
        xml.words(&short);
    });
}

/// Ascending positions as near to the wanted ones (ascending) as `gap` between them and the ends allow.
fn spread(wanted: &[f64], gap: f64, lo: f64, hi: f64) -> Vec<f64> {
    let mut places = wanted.to_vec();
    for i in 1..places.len() {
        places[i] = places[i].max(places[i - 1] + gap);
    }
    let mut ceiling = hi.max(lo + gap * wanted.len().saturating_sub(1) as f64);
    for place in places.iter_mut().rev() {
        *place = place.min(ceiling);
        ceiling = *place - gap;
    }
    places
}

/// A box in the drawing: left, top, right, bottom.
type Area = (f64, f64, f64, f64);

/// Ringed points with labels where they hide least.
pub(crate) fn write_markers(xml: &mut Xml, chart: &Chart, frame: &Frame) {
    let inside =
        |m: &&Marker| chart.x.accepts(m.x) && chart.y.accepts(m.y) && frame.holds(frame.place(m.x, m.y));
    let obstacles = obstacles(chart, frame);
    let mut taken: Vec<Area> = Vec::new();
    for marker in chart.markers.iter().filter(inside) {
        let at = frame.place(marker.x, marker.y);
        let value = format!("{}, {}", chart.x.unit.format(marker.x), chart.y.unit.format(marker.y));
        let attributes =
            [("class", "marker".into()), ("cx", at.0.into()), ("cy", at.1.into()), ("r", 5.0.into())];
        xml.shape("circle", &attributes, &format!("{}: {value}", marker.label));
        let room = (frame.right - frame.left) * 0.6;
        let label = text::fit(&marker.label, room);
        let area = best_area(frame, at, text::bold_width(&label), &obstacles, &taken);
        taken.push(area);
        name_at(xml, "marker-name", (area.0, area.3 - 4.0), &marker.label, room);
    }
}

/// Points of the drawn lines and their middles.
fn obstacles(chart: &Chart, frame: &Frame) -> Vec<Place> {
    let mut places = Vec::new();
    for series in &chart.series {
        let drawn = series.points.iter().filter(|p| chart.draws(p)).map(|p| frame.place(p.x, p.y));
        let mut before: Option<Place> = None;
        for place in drawn {
            if let Some(before) = before {
                let part =
                    |f: f64| (before.0 + f * (place.0 - before.0), before.1 + f * (place.1 - before.1));
                places.extend([0.2, 0.4, 0.6, 0.8].map(part));
            }
            places.push(place);
            before = Some(place);
        }
    }
    places
}

fn best_area(frame: &Frame, at: Place, width: f64, obstacles: &[Place], taken: &[Area]) -> Area {
    let beside = [
        (9.0, -18.0),
        (9.0, 4.0),
        (-9.0 - width, -18.0),
        (-9.0 - width, 4.0),
        (-width / 2.0, -26.0),
        (-width / 2.0, 10.0),
        (11.0, -7.0),
        (-11.0 - width, -7.0),
    ];
    let area = |(dx, dy): Place| (at.0 + dx, at.1 + dy, at.0 + dx + width, at.1 + dy + LINE_PX + 1.0);
    let areas = beside.map(area);
    let cost = |area: &Area| {
        let outside =
            area.0 < frame.left || area.2 > frame.width || area.1 < frame.top || area.3 > frame.bottom;
        let overlaps = taken.iter().filter(|t| touch(t, area)).count();
        let hides = obstacles.iter().filter(|o| touch(&(o.0, o.1, o.0, o.1), area)).count();
        (usize::from(outside), overlaps, hides)
    };
    areas.into_iter().min_by_key(cost).unwrap_or_else(|| area((9.0, -18.0)))
}

fn touch(a: &Area, b: &Area) -> bool {
    a.0 <= b.2 && b.0 <= a.2 && a.1 <= b.3 && b.1 <= a.3
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn spread_names_keep_their_distance(mut wanted in proptest::collection::vec(0.0f64..300.0, 1..15)) {
            wanted.sort_by(f64::total_cmp);
            let places = spread(&wanted, 14.0, 0.0, 300.0);
            prop_assert!(places.windows(2).all(|w| w[1] - w[0] >= 14.0 - 1e-9));
            prop_assert!(places.iter().all(|&p| p <= 300.0 + 1e-9));
        }
    }

    #[test]
    fn names_with_room_stay_where_they_are() {
        assert_eq!(spread(&[10.0, 100.0], 14.0, 0.0, 200.0), [10.0, 100.0]);
        assert_eq!(spread(&[], 14.0, 0.0, 200.0), Vec::<f64>::new());
    }
}
