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
/// A restless line has about this many marks.
const SPARSE_MARKS: usize = 9;
/// A series has at most this many tooltips.
const TOOLTIPS_MAX: usize = 120;

/// How a series is drawn in a given frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    slot: usize,
    /// Much longer than it is wide: dashes would read as noise, so a thin line with a few marks is drawn.
    restless: bool,
    /// Few enough points for each to be marked.
    marked: bool,
}

impl Look {
    pub(crate) fn of(chart: &Chart, frame: &Frame, series: &Series, index: usize) -> Self {
        let places: Vec<Place> = drawn(chart, series).map(|p| frame.place(p.x, p.y)).collect();
        let unjoined = series.join == Join::None;
        Self {
            slot: series.slot.unwrap_or(index),
            restless: !unjoined && is_restless(&places),
            marked: unjoined || (places.len() <= MARKED_MAX && series.join == Join::Straight),
        }
    }

    /// The key of the series in a legend.
    pub(crate) fn key(self, series: &Series) -> Key {
        let Self { slot, restless, marked } = self;
        match (series.join, series.filled) {
            (Join::None, _) => Key::Mark(slot),
            (_, true) => Key::Area(slot),
            _ => Key::Line { slot, dashed: !restless, marked: marked || restless },
        }
    }
}

fn drawn<'a>(chart: &'a Chart, series: &'a Series) -> impl Iterator<Item = &'a Point> {
    series.points.iter().filter(|p| chart.draws(p))
}

fn is_restless(places: &[Place]) -> bool {
    let (Some(first), Some(last)) = (places.first(), places.last()) else { return false };
    let length: f64 = places.windows(2).map(|w| (w[1].0 - w[0].0).hypot(w[1].1 - w[0].1)).sum();
    places.len() > MARKED_MAX && length > 4.0 * (last.0 - first.0).hypot(last.1 - first.1).max(200.0)
}

/// Draws a series. Points that cannot be placed interrupt lines.
pub(crate) fn write(xml: &mut Xml, chart: &Chart, frame: &Frame, series: &Series, look: Look) {
    let runs: Vec<Vec<Point>> = match series.join {
        Join::None => vec![drawn(chart, series).copied().collect()],
        _ => {
            let runs = series.points.chunk_by(|a, b| chart.draws(a) == chart.draws(b));
            runs.filter(|run| chart.draws(&run[0])).map(<[Point]>::to_vec).collect()
        }
    };
    let crowded = series.join == Join::None && runs.iter().all(|r| r.len() > CROWDED_MIN);
    let size = if crowded { 0.6 } else { 1.0 };
    let class = format!("{}{}", figure::slot_class(look.slot), if crowded { " crowded" } else { "" });
    let mut marks = Marks { look, size, budget: TOOLTIPS_MAX };
    xml.within("g", &[("class", class.into())], |xml| {
        for run in runs {
            let drawn = Drawn::new(frame, series, &run);
            drawn.write_joined(xml, look);
            drawn.write_marks(xml, chart, series, &mut marks);
        }
    });
}

/// How the marks of a series look.
struct Marks {
    look: Look,
    /// Relative to the usual.
    size: f64,
    /// Tooltips left to give.
    budget: usize,
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

    fn write_joined(&self, xml: &mut Xml, look: Look) {
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
        let dash = if self.filled || look.restless { "" } else { figure::dash(look.slot) };
        let class = if look.restless || self.filled { "line thin" } else { "line" };
        let attributes = [("class", class.into()), ("d", d.into()), ("stroke-dasharray", dash.into())];
        xml.shape("path", &attributes[..if dash.is_empty() { 2 } else { 3 }], "");
    }

    fn write_marks(&self, xml: &mut Xml, chart: &Chart, series: &Series, marks: &mut Marks) {
        let lonely = self.points.len() == 1 && self.join != Join::None;
        let sparse = marks.look.restless && !self.filled && chart.series.len() > 1;
        let mark_every = self.points.len().div_ceil(SPARSE_MARKS);
        let tip_every = self.points.len().div_ceil(marks.budget.max(1));
        for (i, (point, &place)) in self.points.iter().zip(&self.upper).enumerate() {
            let has_tooltip = i % tip_every == 0 && marks.budget > 0;
            let tooltip = if has_tooltip { tooltip(chart, series, point) } else { String::new() };
            marks.budget -= usize::from(has_tooltip);
            if marks.look.marked || lonely || (sparse && i % mark_every == mark_every / 2) {
                figure::sized_mark(xml, marks.look.slot, place, marks.size, &tooltip);
            } else if has_tooltip {
                let at = [("cx", place.0.into()), ("cy", place.1.into()), ("r", 6.0.into())];
                let [x, y, r] = at;
                xml.shape("circle", &[("class", "hit".into()), x, y, r], &tooltip);
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
