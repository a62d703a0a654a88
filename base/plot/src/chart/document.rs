//! Data of a chart for the page's script: the points that are drawn, with full precision.

use super::definition::{Chart, ReferenceAxis};
use super::marks;
use crate::axis::{Axis, AxisScale};
use crate::data::{self, Json};
use crate::figure;
use crate::series::{DataPoint, Join, Series};

/// Returns the document of a chart that is `width` pixels wide; empty if there is nothing to draw.
pub(super) fn of(chart: &Chart, width: f64) -> String {
    let Some(frame) = chart.frame(width) else { return String::new() };
    let mut all = 0;
    let mut kept = 0;
    let mut series = Vec::new();
    for (index, one) in chart.series.iter().enumerate() {
        let (runs, count) = marks::drawn(chart, &frame, one);
        all += count;
        kept += runs.iter().map(Vec::len).sum::<usize>();
        series.push(series_document(one, index, &runs));
    }
    let is_decimated = kept < all;
    let ending = if is_decimated { "-decimated" } else { "" };
    let comment = if is_decimated {
        format!("# decimated: {kept} of {all} points; highest and lowest values are kept\n")
    } else {
        String::new()
    };
    let head = format!("{comment}{}\n", columns(chart).join(","));
    let references = chart.references_on(ReferenceAxis::X).filter(|line| chart.x.accepts(line.value));
    let references = references.map(|line| {
        let class = if line.quiet { "guide" } else { "limit" };
        format!("[{},{},\"{class}\"]", data::number(line.value), data::quoted(&line.label))
    });
    let markers =
        chart.markers.iter().filter(|marker| chart.x.accepts(marker.x) && chart.y.accepts(marker.y));
    let markers = markers.map(|marker| {
        let position = format!("{},{}", data::number(marker.x), data::number(marker.y));
        format!("[{position},{}]", data::quoted(&marker.label))
    });
    Json::default()
        .text("file", &data::file_name(&chart.title, ending))
        .text("head", &head)
        .raw("x", &axis(&chart.x, (frame.x.lo, frame.x.hi)))
        .raw("y", &axis(&chart.y, (frame.y.lo, frame.y.hi)))
        .raw("series", &data::array(series))
        .raw("references", &data::array(references))
        .raw("markers", &data::array(markers))
        .end()
}

/// Returns the headings of the columns of the CSV: series, x, y and, for bands, their lower edge.
fn columns(chart: &Chart) -> Vec<String> {
    let named =
        |label: &str, default: &str| if label.is_empty() { default.to_owned() } else { label.to_owned() };
    let y = named(&chart.y.label, "y");
    let mut columns = vec![
        "series".to_owned(),
        data::csv_heading(&named(&chart.x.label, "x"), chart.x.unit),
        data::csv_heading(&y, chart.y.unit),
    ];
    if chart.series.iter().any(has_base) {
        columns.push(data::csv_heading(&format!("{y}, lower edge"), chart.y.unit));
    }
    columns
}

fn has_base(series: &Series) -> bool {
    series.points.iter().any(|point| point.base.is_some())
}

fn axis(axis: &Axis, (lo, hi): (f64, f64)) -> String {
    Json::default()
        .text("label", &axis.label)
        .text("unit", axis.unit.name())
        .raw("log", if axis.scale == AxisScale::Log { "true" } else { "false" })
        .raw("lo", &data::number(lo))
        .raw("hi", &data::number(hi))
        .end()
}

/// Returns a series with the coordinates of its points in one array, with `null` between parts.
fn series_document(series: &Series, index: usize, runs: &[Vec<DataPoint>]) -> String {
    let with_base = has_base(series);
    let gap = if with_base { "null,null,null" } else { "null,null" };
    let point = |point: &DataPoint| {
        let place = format!("{},{}", data::number(point.x), data::number(point.y));
        if with_base { format!("{place},{}", data::number(point.base.unwrap_or(f64::NAN))) } else { place }
    };
    let runs = runs.iter().map(|run| run.iter().map(point).collect::<Vec<_>>().join(","));
    let join = match series.join {
        Join::None => "none",
        Join::Straight => "straight",
        Join::Step => "step",
    };
    let mark = figure::mark_outline(series.slot.unwrap_or(index), (0.0, 0.0), 1.0).unwrap_or_default();
    Json::default()
        .text("name", &series.name)
        .text("field", &data::csv_field(&series.name))
        .text("join", join)
        .text("mark", &mark)
        .raw("size", if with_base { "3" } else { "2" })
        .raw("p", &format!("[{}]", runs.collect::<Vec<_>>().join(&format!(",{gap},"))))
        .end()
}
