//! An audit as a page: the answer, sums against the capacity, and every limit with its place in a file.

use super::audited::AuditedSurvey;
use super::text;
use cli::page_table::table;
use limits::{PlaceSum, Resource};
use plot::{Bars, Block, KeyFigure, Page, Status, Unit};
use std::collections::BTreeSet;
use units::{Bytes, plural};

/// Rows of the table of limits that are open; more stand behind a fold.
const ROWS_OPEN: usize = 50;

pub(crate) fn html(audited: &AuditedSurvey) -> String {
    let AuditedSurvey { survey, audit } = audited;
    let tenants: BTreeSet<&str> = survey.limits.iter().map(|limit| limit.tenant.as_str()).collect();
    let over = audit.places.iter().filter(|sum| sum.is_over()).count();
    let unlimited: usize = audit.places.iter().map(|sum| sum.unlimited.len()).sum();
    let figures = vec![
        KeyFigure::new(tenants.len().to_string(), "tenants with limits"),
        KeyFigure::new(unlimited.to_string(), "tenants without a ceiling").status(bad_if(unlimited > 0)),
        KeyFigure::new(over.to_string(), "places over capacity").status(bad_if(over > 0)),
    ];
    let notes = std::iter::once(text::reading(survey)).chain(text::doubts(survey)).map(Block::paragraph);
    let blocks: Vec<Block> = std::iter::once(figures.into()).chain(notes).collect();
    let mut page = Page::new("Limits that are set").lead(text::lead(audited)).section("", blocks);
    page = page.section("Sums", sums(audited));
    if !audit.parents.is_empty() {
        let rows = audit.parents.iter().map(text::parent_row).collect();
        page = page.section("Children beyond their parent", [table(&text::PARENTS, 3, rows).into()]);
    }
    let uncovered = text::uncovered_rows(audited);
    if !uncovered.is_empty() {
        page =
            page.section("Reservations that are not covered", [table(&text::UNCOVERED, 3, uncovered).into()]);
    }
    let mut rows: Vec<Vec<String>> = survey.limits.iter().map(text::limit_row).collect();
    let rest = rows.split_off(rows.len().min(ROWS_OPEN));
    let mut blocks: Vec<Block> = vec![table(&text::LIMITS, 4, rows).into()];
    if !rest.is_empty() {
        let summary = format!("{} more", plural(rest.len() as u64, "limit"));
        blocks.push(Block::fold(summary, [table(&text::LIMITS, 4, rest).into()]));
    }
    page = page.section("Limits", blocks).section("How to read this page", how_to_read());
    cli::page::document(page)
}

fn bad_if(is_bad: bool) -> Status {
    if is_bad { Status::Bad } else { Status::Good }
}

fn sums(audited: &AuditedSurvey) -> Vec<Block> {
    let places = &audited.audit.places;
    let mut blocks = vec![table(&text::SUMS, 2, places.iter().map(text::sum_row).collect()).into()];
    let with_sizes: Vec<&PlaceSum> = places.iter().filter(|sum| !sum.sizes.is_empty()).collect();
    if let Some(first) = with_sizes.first() {
        let parts = first.sizes.iter().map(|size| Bytes(size.request_bytes).to_string());
        let chart = Bars::grouped(
            "Ceilings as a share of the device, by request size",
            ("share", Unit::Percent),
            parts,
        )
        .limit(1.0, "capacity")
        .note("Right of the line, the tenants may together ask for more than the device serves.");
        let rows = with_sizes.iter().map(|sum| (&sum.place, sum.sizes.iter().map(|size| size.ceilings)));
        blocks.push(rows.fold(chart, |chart, (place, values)| chart.row(place.as_str(), values)).into());
    }
    let known = places.iter().filter(|sum| sum.resource == Resource::Network && sum.capacity.is_some());
    let known: Vec<&PlaceSum> = known.collect();
    if !known.is_empty() {
        let parts = ["ceilings", "reservations"];
        let chart = Bars::grouped("Network, as a share of the link", ("share", Unit::Percent), parts)
            .limit(1.0, "capacity");
        let rows = known.iter().map(|sum| {
            let capacity = sum.capacity.unwrap_or(f64::INFINITY);
            (&sum.place, [sum.ceilings / capacity, sum.reservations / capacity])
        });
        blocks.push(rows.fold(chart, |chart, (place, values)| chart.row(place.as_str(), values)).into());
    }
    blocks
}

fn how_to_read() -> Vec<Block> {
    vec![Block::paragraph(
        "A ceiling in bytes or requests becomes a share of the device by the profile's cost of a request of each size, so \
         sums depend on the size. A ceiling within that of a parent counts as the parent's. The worst case is the longest \
         wait when all tenants use their ceilings at once and the device serves in the order of arrival; it is a bound \
         if the tenants keep to their token buckets and each bucket admits one request beyond its size.",
    )]
}
