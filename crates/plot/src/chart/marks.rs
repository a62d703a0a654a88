//! Lines, areas and marks of a series, and its key in the legend.

use super::Chart;
use super::frame::Frame;
use crate::decimate::{self, Place};
use crate::page::figure::{self, Key};
use crate::series::{Join, Point, Series};
use crate::xml::{Xml, px};

/// Lines of up to this many points show every point.
const MARKED_MAX: usize = 40;
/// From this many unjoined marks on, they are small and see-through.
const CROWDED_MIN: usize = 200;
/// A series has at most this many tooltips.
const TOOLTIPS_MAX: usize = 120;

/// The key of a series in a legend.
pub(crate) fn key(series: &Series, slot: usize) -> Key {
    match (series.join, series.filled) {
        (Join::None, _) => Key::Mark(slot),
        (_, true) => Key::Area(slot),
        _ => Key::Line(slot),
    }
}

/// Draws a series. Points that cannot be placed interrupt lines.
pub(crate) fn write(xml: &mut Xml, chart: &Chart, frame: &Frame, series: &Series, slot: usize) {
    let mut budget = TOOLTIPS_MAX;
    let runs: Vec<Vec<Point>> = series
        .points
        .chunk_by(|a, b| chart.draws(a) == chart.draws(b))
        .filter(|run| chart.draws(&run[0]))
        .map(<[Point]>::to_vec)
        .collect();
    let runs = if series.join == Join::None { vec![runs.concat()] } else { runs };
    let total: usize = runs.iter().map(Vec::len).sum();
    let crowded = series.join == Join::None && total > CROWDED_MIN;
    let size = if crowded { 0.6 } else { 1.0 };
    let class = format!("{}{}", figure::slot_class(slot), if crowded { " crowded" } else { "" });
    xml.within("g", &[("class", class.into())], |xml| {
        for run in runs {
            let drawn = Drawn::new(frame, series, &run);
            drawn.write_joined(xml, slot);
            let visible = series.join == Join::None || (total <= MARKED_MAX && series.join == Join::Straight);
            drawn.write_marks(xml, chart, series, &mut Marks { slot, visible, size, budget: &mut budget });
        }
    });
}

/// How the marks of a series look.
struct Marks<'a> {
    slot: usize,
    visible: bool,
    /// Relative to the usual.
    size: f64,
    /// Tooltips left to give.
    budget: &'a mut usize,
}

/// A run of points, thinned to the resolution of the drawing.
struct Drawn {
    points: Vec<Point>,
    upper: Vec<Place>,
    lower: Vec<Place>,
    join: Join,
    filled: bool,
}

impl Drawn {
    fn new(frame: &Frame, series: &Series, run: &[Point]) -> Self {
        let places: Vec<Place> = run.iter().map(|p| frame.place(p.x, p.y)).collect();
        let kept = match series.join {
            Join::None => decimate::marks(&places),
            _ => decimate::line(&places),
        };
        let points: Vec<Point> = kept.into_iter().map(|i| run[i]).collect();
        let base =
            |p: &Point| p.base.filter(|b| b.is_finite()).unwrap_or(frame.y.baseline()).max(lowest(frame));
        let upper = points.iter().map(|p| frame.place(p.x, p.y)).collect();
        let lower = points.iter().map(|p| frame.place(p.x, base(p))).collect();
        Self { points, upper, lower, join: series.join, filled: series.filled }
    }

    fn write_joined(&self, xml: &mut Xml, slot: usize) {
        if self.join == Join::None || self.upper.len() < 2 {
            return;
        }
        if self.filled {
            let below: Vec<Place> = path_places(&self.lower, self.join).into_iter().rev().collect();
            let around = [path_places(&self.upper, self.join), below].concat();
            let d = format!("M{}Z", path(&around));
            xml.shape("path", &[("class", "area".into()), ("d", d.into())], "");
        }
        let d = format!("M{}", path(&path_places(&self.upper, self.join)));
        // Dashes on a restless line read as noise; colour and legend have to do there.
        let restless = self.is_restless();
        let dash = if self.filled || restless { "" } else { figure::dash(slot) };
        let class = if restless { "line restless" } else { "line" };
        let attributes = [("class", class.into()), ("d", d.into()), ("stroke-dasharray", dash.into())];
        xml.shape("path", &attributes[..if dash.is_empty() { 2 } else { 3 }], "");
    }

    /// Much longer than it is wide.
    fn is_restless(&self) -> bool {
        let length: f64 = self.upper.windows(2).map(|w| (w[1].0 - w[0].0).hypot(w[1].1 - w[0].1)).sum();
        let (first, last) = (self.upper[0], self.upper[self.upper.len() - 1]);
        length > 4.0 * (last.0 - first.0).hypot(last.1 - first.1).max(200.0)
    }

    fn write_marks(&self, xml: &mut Xml, chart: &Chart, series: &Series, marks: &mut Marks<'_>) {
        let lonely = self.points.len() == 1 && self.join != Join::None;
        let stride = self.points.len().div_ceil((*marks.budget).max(1));
        for (i, (point, &place)) in self.points.iter().zip(&self.upper).enumerate() {
            let has_tooltip = i % stride == 0 && *marks.budget > 0;
            let tooltip = if has_tooltip { tooltip(chart, series, point) } else { String::new() };
            *marks.budget -= usize::from(has_tooltip);
            if marks.visible || lonely {
                figure::sized_mark(xml, marks.slot, place, marks.size, &tooltip);
            } else if has_tooltip {
                let attributes = [
                    ("class", "hit".into()),
                    ("cx", place.0.into()),
                    ("cy", place.1.into()),
                    ("r", 6.0.into()),
                ];
                xml.shape("circle", &attributes, &tooltip);
            }
        }
    }
}

fn lowest(frame: &Frame) -> f64 {
    frame.y.lo
}

fn tooltip(chart: &Chart, series: &Series, point: &Point) -> String {
    let name = if series.name.is_empty() { String::new() } else { format!("{}: ", series.name) };
    let base = point.base.map_or(String::new(), |b| format!("{} – ", chart.y.unit.format(b)));
    format!("{name}{}, {base}{}", chart.x.unit.format(point.x), chart.y.unit.format(point.y))
}

/// The corners of the joined line.
fn path_places(places: &[Place], join: Join) -> Vec<Place> {
    let mut corners: Vec<Place> = Vec::new();
    for &place in places {
        if let (Join::Step, Some(&before)) = (join, corners.last())
            && before.0 != place.0
            && before.1 != place.1
        {
            corners.push((place.0, before.1));
        }
        corners.push(place);
    }
    corners
}

fn path(places: &[Place]) -> String {
    let text: Vec<String> = places.iter().map(|&(x, y)| format!("{} {}", px(x), px(y))).collect();
    text.join("L")
}
