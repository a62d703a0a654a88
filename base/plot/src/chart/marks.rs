//! Draws the lines, areas and marks of a series, and chooses its sample in the legend.

use super::definition::Chart;
use super::frame::PlotFrame;
use crate::decimate;
use crate::figure::{self, LegendKey, PixelPosition};
use crate::series::{DataPoint, Join, Series};
use crate::xml::{Xml, px};

/// Maximum number of points of a line that are all marked.
const MARKED_MAX: usize = 40;
/// The number of unjoined marks beyond which they are small and translucent.
const CROWDED_MIN: usize = 200;
/// The approximate number of marks of a jagged line.
const SPARSE_MARKS: usize = 9;
/// Maximum number of tooltips of a series.
const TOOLTIPS_MAX: usize = 120;

/// Style of a series in a frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SeriesStyle {
    slot: usize,
    /// True if the line is much longer than the distance between its ends. Dashes would look like noise,
    /// so it is solid, thin and has a few marks.
    jagged: bool,
    /// True if every point is marked.
    marked: bool,
}

impl SeriesStyle {
    pub(super) fn choose(chart: &Chart, frame: &PlotFrame, series: &Series, index: usize) -> Self {
        let positions: Vec<PixelPosition> =
            drawable(chart, series).map(|p| frame.position(p.x, p.y)).collect();
        let unjoined = series.join == Join::None;
        Self {
            slot: series.slot.unwrap_or(index),
            jagged: !unjoined && is_jagged(&positions),
            marked: unjoined || (positions.len() <= MARKED_MAX && series.join == Join::Straight),
        }
    }

    /// Returns the sample of the series in a legend.
    pub(super) fn legend_key(self, series: &Series) -> LegendKey {
        let Self { slot, jagged, marked } = self;
        match (series.join, series.filled) {
            (Join::None, _) => LegendKey::Mark(slot),
            (_, true) => LegendKey::PixelBox(slot),
            _ => LegendKey::Line { slot, dashed: !jagged, marked: marked || jagged },
        }
    }
}

/// Returns the points of a series that the axes accept.
fn drawable<'a>(chart: &'a Chart, series: &'a Series) -> impl Iterator<Item = &'a DataPoint> {
    series.points.iter().filter(|p| chart.can_draw(p))
}

fn is_jagged(positions: &[PixelPosition]) -> bool {
    let (Some(first), Some(last)) = (positions.first(), positions.last()) else { return false };
    let length: f64 = positions.windows(2).map(|w| (w[1].0 - w[0].0).hypot(w[1].1 - w[0].1)).sum();
    positions.len() > MARKED_MAX && length > 4.0 * (last.0 - first.0).hypot(last.1 - first.1).max(200.0)
}

/// Returns the points of a series that the axes accept; lines are interrupted between the parts.
fn runs(chart: &Chart, series: &Series) -> Vec<Vec<DataPoint>> {
    match series.join {
        Join::None => vec![drawable(chart, series).copied().collect()],
        _ => {
            let runs = series.points.chunk_by(|a, b| chart.can_draw(a) == chart.can_draw(b));
            runs.filter(|run| chart.can_draw(&run[0])).map(<[DataPoint]>::to_vec).collect()
        }
    }
}

/// Returns the points of a series that are drawn, in the parts between which lines are interrupted, and the number of
/// points that the axes accept.
pub(super) fn drawn(chart: &Chart, frame: &PlotFrame, series: &Series) -> (Vec<Vec<DataPoint>>, usize) {
    let runs = runs(chart, series);
    let count = runs.iter().map(Vec::len).sum();
    (runs.iter().map(|run| ThinnedRun::new(frame, series, run).points).collect(), count)
}

/// Draws a series. Points that the axes do not accept interrupt lines.
pub(super) fn write(xml: &mut Xml, chart: &Chart, frame: &PlotFrame, series: &Series, style: SeriesStyle) {
    let runs = runs(chart, series);
    let crowded = series.join == Join::None && runs.iter().all(|r| r.len() > CROWDED_MIN);
    let size = if crowded { 0.6 } else { 1.0 };
    let class = format!("{}{}", figure::slot_class(style.slot), if crowded { " crowded" } else { "" });
    let mut marks = MarkStyle { style, size, tooltips_left: TOOLTIPS_MAX };
    xml.element("g", &[("class", class.into())], |xml| {
        for run in runs {
            let run = ThinnedRun::new(frame, series, &run);
            run.write_joined(xml, style);
            run.write_marks(xml, chart, series, &mut marks);
        }
    });
}

/// Style of the marks of a series, and the number of tooltips left.
struct MarkStyle {
    style: SeriesStyle,
    /// The size relative to the usual one.
    size: f64,
    tooltips_left: usize,
}

/// Consecutive points, thinned to the resolution of the drawing, with the upper and lower edge of their area.
struct ThinnedRun {
    points: Vec<DataPoint>,
    upper: Vec<PixelPosition>,
    lower: Vec<PixelPosition>,
    join: Join,
    filled: bool,
}

impl ThinnedRun {
    fn new(frame: &PlotFrame, series: &Series, run: &[DataPoint]) -> Self {
        let positions: Vec<PixelPosition> = run.iter().map(|p| frame.position(p.x, p.y)).collect();
        let kept = match series.join {
            Join::None => decimate::mark_indices(&positions),
            _ => decimate::line_indices(&positions),
        };
        let points: Vec<DataPoint> = kept.into_iter().map(|i| run[i]).collect();
        let upper = points.iter().map(|p| frame.position(p.x, p.y)).collect();
        let lower = points.iter().map(|p| frame.position(p.x, base_of(p, frame))).collect();
        Self { points, upper, lower, join: series.join, filled: series.filled }
    }

    fn write_joined(&self, xml: &mut Xml, style: SeriesStyle) {
        if self.join == Join::None || self.upper.len() < 2 {
            return;
        }
        if self.filled {
            let below: Vec<PixelPosition> =
                joined_corners(&self.lower, self.join).into_iter().rev().collect();
            let around = [joined_corners(&self.upper, self.join), below].concat();
            let d = format!("M{}Z", path(&around));
            xml.shape("path", &[("class", "area".into()), ("d", d.into())], "");
        }
        let d = format!("M{}", path(&joined_corners(&self.upper, self.join)));
        let dash = if self.filled || style.jagged { "" } else { figure::dash(style.slot) };
        let class = if style.jagged || self.filled { "line thin" } else { "line" };
        let attributes = [("class", class.into()), ("d", d.into()), ("stroke-dasharray", dash.into())];
        xml.shape("path", &attributes[..if dash.is_empty() { 2 } else { 3 }], "");
    }

    fn write_marks(&self, xml: &mut Xml, chart: &Chart, series: &Series, marks: &mut MarkStyle) {
        let lonely = self.points.len() == 1 && self.join != Join::None;
        let sparse = marks.style.jagged && !self.filled && chart.series.len() > 1;
        let mark_every = self.points.len().div_ceil(SPARSE_MARKS);
        let tip_every = self.points.len().div_ceil(marks.tooltips_left.max(1));
        for (i, (point, &position)) in self.points.iter().zip(&self.upper).enumerate() {
            let has_tooltip = i % tip_every == 0 && marks.tooltips_left > 0;
            let tooltip = if has_tooltip { tooltip(chart, series, point) } else { String::new() };
            marks.tooltips_left -= usize::from(has_tooltip);
            if marks.style.marked || lonely || (sparse && i % mark_every == mark_every / 2) {
                figure::sized_mark(xml, marks.style.slot, position, marks.size, &tooltip);
            } else if has_tooltip {
                let attributes = [
                    ("class", "hit".into()),
                    ("cx", position.0.into()),
                    ("cy", position.1.into()),
                    ("r", 6.0.into()),
                ];
                xml.shape("circle", &attributes, &tooltip);
            }
        }
    }
}

/// Returns the y value at which the area below a point ends.
fn base_of(point: &DataPoint, frame: &PlotFrame) -> f64 {
    point.base.filter(|base| base.is_finite()).unwrap_or(frame.y.baseline()).max(frame.y.lo)
}

fn tooltip(chart: &Chart, series: &Series, point: &DataPoint) -> String {
    let name = if series.name.is_empty() { String::new() } else { format!("{}: ", series.name) };
    let base = point.base.map_or(String::new(), |b| format!("{} – ", chart.y.unit.format(b)));
    format!("{name}{}, {base}{}", chart.x.unit.format(point.x), chart.y.unit.format(point.y))
}

/// Returns the corners of the joined line.
fn joined_corners(positions: &[PixelPosition], join: Join) -> Vec<PixelPosition> {
    let mut corners: Vec<PixelPosition> = Vec::new();
    for &position in positions {
        if let (Join::Step, Some(&before)) = (join, corners.last())
            && before.0 != position.0
            && before.1 != position.1
        {
            corners.push((position.0, before.1));
        }
        corners.push(position);
    }
    corners
}

/// Formats the coordinates of a path through these positions.
fn path(positions: &[PixelPosition]) -> String {
    let text: Vec<String> = positions.iter().map(|&(x, y)| format!("{} {}", px(x), px(y))).collect();
    text.join("L")
}
