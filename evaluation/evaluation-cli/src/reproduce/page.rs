//! The papers' figures as one page: drawn, with their claims and verdicts.

use crate::reproduce::text::{ReproducedExperiment, ReproductionView, lead, missing, statement, word};
use plot::{Axis, Block, Cell, Chart, Column, Page, Series, Status, Table, Unit};
use reproduce::{Agreement, AxisQuantity, Claim, FigurePlot, Paper, ReproducedFigure};

/// The page with all figures.
pub(crate) fn html(view: &ReproductionView) -> String {
    let mut page = Page::new("The papers' figures, simulated").lead(lead(view));
    for done in view.done {
        page = page
            .section(format!("{}: {}", done.experiment.paper.title(), done.experiment.title), blocks(done));
    }
    cli::page::document(page)
}

fn blocks(done: &ReproducedExperiment) -> Vec<Block> {
    let figure = match &done.outcome {
        Err(path) => return vec![Block::paragraph(missing(path))],
        Ok(figure) => figure,
    };
    let reading = match done.experiment.paper {
        Paper::Measured => figure.reading.clone(),
        _ => format!("{} Experiment: {}.", figure.reading, done.experiment.name),
    };
    let mut blocks: Vec<Block> = vec![Block::paragraph(reading)];
    blocks.extend(figure.plots.iter().map(|plot| chart(plot).into()));
    if !figure.claims.is_empty() {
        blocks.push(claims(figure).into());
    }
    blocks
}

fn chart(plot: &FigurePlot) -> Chart {
    let chart = Chart::new(plot.title.clone(), axis(&plot.x), axis(&plot.y));
    let chart = chart.note(format!(
        "The {} against the {}: a line for each setting, points where it was simulated or measured.",
        plot.y.label, plot.x.label
    ));
    chart.all(plot.lines.iter().map(|line| Series::line(line.name.clone(), line.points.iter().copied())))
}

fn axis(axis: &reproduce::FigureAxis) -> Axis {
    let unit = match axis.quantity {
        AxisQuantity::Seconds => Unit::Seconds,
        AxisQuantity::PerSecond => Unit::PerSec,
        AxisQuantity::Share => Unit::Percent,
        AxisQuantity::Number => Unit::Plain,
    };
    if axis.log { Axis::log(axis.label.clone(), unit) } else { Axis::linear(axis.label.clone(), unit) }
}

fn claims(figure: &ReproducedFigure) -> Table {
    let columns =
        [Column::name("verdict"), Column::text("claim"), Column::name("here"), Column::text("remark")];
    let mut table = Table::new(columns);
    for claim in &figure.claims {
        table.push([
            status(claim),
            statement(claim).into(),
            claim.found_text.clone().into(),
            claim.remark.clone().into(),
        ]);
    }
    table
}

fn status(claim: &Claim) -> Cell {
    let status = match claim.agreement {
        Agreement::Agree => Status::Good,
        Agreement::Differ => Status::Bad,
        Agreement::Undecided | Agreement::Underspecified => Status::Warn,
    };
    Cell::text(word(claim.agreement)).status(status)
}
