//! Names of reference lines, in the margins, and labels of markers, beside them.

use super::definition::{Chart, Marker, Reference, ReferenceAxis};
use super::frame::PlotFrame;
use crate::figure::{self, PixelPosition};
use crate::text_width;
use crate::xml::Xml;

const LINE_PX: f64 = 14.0;

/// Writes reference lines with their names: to the right of horizontal lines, above vertical ones.
pub(super) fn write_references(xml: &mut Xml, chart: &Chart, frame: &PlotFrame) {
    let mut horizontal: Vec<PlacedReference<'_>> = Vec::new();
    let mut vertical: Vec<PlacedReference<'_>> = Vec::new();
    for reference in &chart.references {
        match reference.axis {
            ReferenceAxis::X if chart.x.accepts(reference.value) => {
                let x = frame.x_px(reference.value);
                if (frame.left - 0.5..=frame.right + 0.5).contains(&x) {
                    vertical.push(PlacedReference { px: x, reference });
                }
            }
            ReferenceAxis::Y if chart.y.accepts(reference.value) => {
                let y = frame.y_px(reference.value);
                if (frame.top - 0.5..=frame.bottom + 0.5).contains(&y) {
                    horizontal.push(PlacedReference { px: y, reference });
                }
            }
            ReferenceAxis::X | ReferenceAxis::Y => {}
        }
    }
    for line in &horizontal {
        frame.write_horizontal(xml, line.class("limit", "guide"), line.px);
    }
    write_horizontal_names(xml, frame, horizontal);
    PlotFrame::write_still(xml, |xml| {
        for line in &vertical {
            frame.write_vertical(xml, line.class("limit", "guide"), line.px);
        }
        write_vertical_names(xml, frame, vertical);
    });
}

/// A reference line inside the plot, with its position on its axis.
struct PlacedReference<'a> {
    px: f64,
    reference: &'a Reference,
}

impl PlacedReference<'_> {
    fn class(&self, limit: &'static str, guide: &'static str) -> &'static str {
        if self.reference.quiet { guide } else { limit }
    }

    fn write_name(&self, xml: &mut Xml, position: PixelPosition, room: f64) {
        let class = self.class("limit-name", "guide-name");
        figure::shortened_text(xml, class, position, &self.reference.label, room);
    }
}

/// Writes the names of horizontal lines in the right margin.
fn write_horizontal_names(xml: &mut Xml, frame: &PlotFrame, mut lines: Vec<PlacedReference<'_>>) {
    lines.sort_by(|a, b| a.px.total_cmp(&b.px));
    let wanted: Vec<f64> = lines.iter().map(|line| line.px).collect();
    let room = frame.width - frame.right - 6.0;
    for (line, y) in lines.iter().zip(spread_apart(&wanted, LINE_PX, frame.top, frame.bottom)) {
        line.write_name(xml, (frame.right + 5.0, y + 4.0), room);
    }
}

/// Writes the names of vertical lines in the margin above the plot.
fn write_vertical_names(xml: &mut Xml, frame: &PlotFrame, mut lines: Vec<PlacedReference<'_>>) {
    lines.sort_by(|a, b| a.px.total_cmp(&b.px));
    let share = (frame.right - frame.left) / lines.len().max(1) as f64;
    let mut free_from = 2.0;
    for line in lines {
        let room = text_width::width(&line.reference.label).min(share);
        let start = (line.px - room / 2.0).min(frame.width - room - 2.0).max(free_from);
        free_from = start + room + 8.0;
        line.write_name(xml, (start, frame.top - 6.0), room + 1.0);
    }
}

/// Returns ascending positions as near to the wanted ones (ascending) as a distance of `gap` and the ends
/// allow.
fn spread_apart(wanted: &[f64], gap: f64, lo: f64, hi: f64) -> Vec<f64> {
    let mut positions = wanted.to_vec();
    for i in 1..positions.len() {
        positions[i] = positions[i].max(positions[i - 1] + gap);
    }
    let mut ceiling = hi.max(lo + gap * wanted.len().saturating_sub(1) as f64);
    for position in positions.iter_mut().rev() {
        *position = position.min(ceiling);
        ceiling = *position - gap;
    }
    positions
}

/// A rectangle in the drawing.
#[derive(Clone, Copy)]
struct PixelBox {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl PixelBox {
    /// Creates the box of a label of this width.
    fn of_label(left: f64, top: f64, width: f64) -> Self {
        Self { left, top, right: left + width, bottom: top + LINE_PX + 1.0 }
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.left <= other.right
            && other.left <= self.right
            && self.top <= other.bottom
            && other.top <= self.bottom
    }

    fn contains(&self, (x, y): PixelPosition) -> bool {
        self.left <= x && x <= self.right && self.top <= y && y <= self.bottom
    }
}

/// Writes ringed points, with labels placed where they hide least.
pub(super) fn write_markers(xml: &mut Xml, chart: &Chart, frame: &PlotFrame) {
    let obstacles = obstacles(chart, frame);
    let mut taken: Vec<PixelBox> = Vec::new();
    for marker in chart.markers.iter().filter(|marker| is_inside(marker, chart, frame)) {
        let position = frame.position(marker.x, marker.y);
        let value = format!("{}, {}", chart.x.unit.format(marker.x), chart.y.unit.format(marker.y));
        let attributes = [
            ("class", "marker".into()),
            ("cx", position.0.into()),
            ("cy", position.1.into()),
            ("r", 5.0.into()),
        ];
        xml.shape("circle", &attributes, &format!("{}: {value}", marker.label));
        let room = (frame.right - frame.left) * 0.6;
        let width = text_width::bold_width(&text_width::fit(&marker.label, room));
        let label = best_box(frame, position, width, &obstacles, &taken);
        taken.push(label);
        figure::shortened_text(xml, "marker-name", (label.left, label.bottom - 4.0), &marker.label, room);
    }
}

fn is_inside(marker: &Marker, chart: &Chart, frame: &PlotFrame) -> bool {
    chart.x.accepts(marker.x)
        && chart.y.accepts(marker.y)
        && frame.contains(frame.position(marker.x, marker.y))
}

/// Returns the positions that labels should not hide: the points of all series, and four points on every
/// line between two of them.
fn obstacles(chart: &Chart, frame: &PlotFrame) -> Vec<PixelPosition> {
    let mut obstacles = Vec::new();
    for series in &chart.series {
        let mut previous: Option<PixelPosition> = None;
        for point in series.points.iter().filter(|p| chart.can_draw(p)) {
            let end = frame.position(point.x, point.y);
            if let Some(start) = previous {
                for share in [0.2, 0.4, 0.6, 0.8] {
                    obstacles
                        .push((start.0 + share * (end.0 - start.0), start.1 + share * (end.1 - start.1)));
                }
            }
            obstacles.push(end);
            previous = Some(end);
        }
    }
    obstacles
}

/// Returns the best box for a label of this width beside a marker. In order of importance: inside the
/// plot, no overlap with other labels, few hidden obstacles.
fn best_box(
    frame: &PlotFrame,
    (x, y): PixelPosition,
    width: f64,
    obstacles: &[PixelPosition],
    taken: &[PixelBox],
) -> PixelBox {
    let offsets = [
        (9.0, -18.0),
        (9.0, 4.0),
        (-9.0 - width, -18.0),
        (-9.0 - width, 4.0),
        (-width / 2.0, -26.0),
        (-width / 2.0, 10.0),
        (11.0, -7.0),
        (-11.0 - width, -7.0),
    ];
    let boxes = offsets.map(|(dx, dy)| PixelBox::of_label(x + dx, y + dy, width));
    let best = boxes.into_iter().min_by_key(|label| {
        let outside = label.left < frame.left
            || label.right > frame.width
            || label.top < frame.top
            || label.bottom > frame.bottom;
        let overlaps = taken.iter().filter(|other| other.overlaps(label)).count();
        let hides = obstacles.iter().filter(|&&obstacle| label.contains(obstacle)).count();
        (usize::from(outside), overlaps, hides)
    });
    best.unwrap_or(boxes[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn spread_names_keep_their_distance(mut wanted in proptest::collection::vec(0.0f64..300.0, 1..15)) {
            wanted.sort_by(f64::total_cmp);
            let places = spread_apart(&wanted, 14.0, 0.0, 300.0);
            prop_assert!(places.windows(2).all(|w| w[1] - w[0] >= 14.0 - 1e-9));
            prop_assert!(places.iter().all(|&p| p <= 300.0 + 1e-9));
        }
    }

    #[test]
    fn names_with_room_stay_where_they_are() {
        assert_eq!(spread_apart(&[10.0, 100.0], 14.0, 0.0, 200.0), [10.0, 100.0]);
        assert_eq!(spread_apart(&[], 14.0, 0.0, 200.0), Vec::<f64>::new());
    }
}
