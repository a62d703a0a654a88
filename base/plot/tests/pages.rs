//! Whole pages, read back by a strict XML parser.

use plot::{
    Axis, Bars, Block, Bullets, Cell, Chart, Column, Dots, Form, KeyFigure, Link, Marker, Page, Reference,
    RowOrder, Series, Site, Status, Table, Unit, stack,
};
use proptest::prelude::*;
use roxmltree::{Document, Node, ParsingOptions};

fn parse(html: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(html, options).unwrap_or_else(|e| panic!("{e}\n{html}"))
}

fn page(block: impl Into<Block>) -> String {
    Page::new("t").section("s", [block.into()]).to_html()
}

fn texts(html: &str) -> Vec<String> {
    let document = parse(html);
    let main = document.descendants().find(|n| n.has_tag_name("main")).unwrap();
    main.descendants().filter(Node::is_text).filter_map(|n| n.text()).map(|t| t.trim().to_owned()).collect()
}

fn says(html: &str, words: &str) -> bool {
    texts(html).iter().any(|t| t.contains(words))
}

fn axis(log: bool, unit: Unit) -> Axis {
    if log { Axis::log("axis", unit) } else { Axis::linear("axis", unit) }
}

fn any_unit() -> impl Strategy<Value = Unit> {
    use Unit::{Bytes, BytesPerSec, PerSec, Percent, Plain, Seconds};
    prop::sample::select(vec![Plain, Seconds, Bytes, BytesPerSec, PerSec, Percent])
}

fn any_value() -> impl Strategy<Value = f64> {
    prop_oneof![prop::num::f64::ANY, -10.0f64..1000.0, Just(0.0), Just(f64::INFINITY), Just(f64::NAN)]
}

fn any_points() -> impl Strategy<Value = Vec<(f64, f64)>> {
    prop::collection::vec((any_value(), any_value()), 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn charts_of_anything_are_well_formed(
        name in "\\PC{0,40}", points in any_points(), pins in (any_value(), any_value()), logs: (bool, bool),
        units in (any_unit(), any_unit()), columns in 0usize..6, kind in 0usize..6,
    ) {
        let kind = [Series::line, Series::steps, Series::points, Series::area].get(kind).map_or_else(
            || Series::band(&name, points.iter().map(|&(x, y)| (x, y / 2.0, y))),
            |make: &fn(String, Vec<(f64, f64)>) -> Series| make(name.clone(), points.clone()),
        );
        let chart = Chart::new(&name, axis(logs.0, units.0).min(pins.0), axis(logs.1, units.1).max(pins.1))
            .series(kind)
            .series(Series::line(&name, points.iter().map(|&(x, y)| (y, x))))
            .reference(Reference::x(pins.0, &name))
            .reference(Reference::y(pins.1, &name))
            .marker(Marker::new(pins.0, pins.1, &name));
        let html = Page::new(&name).lead(&name).footer(&name).section(&name, [
            Block::grid(columns, [chart.clone().into(), chart.into()]),
            vec![KeyFigure::new(&name, &name).status(Status::Warn)].into(),
        ]).to_html();
        parse(&html);
        prop_assert!(!html.contains("NaN") && !html.contains("=\"inf"));
    }

    #[test]
    fn rows_of_anything_are_well_formed(
        rows in prop::collection::vec(("\\PC{0,60}", any_value(), any_value()), 0..80), unit in any_unit(), log: bool,
    ) {
        let bullets = Bullets::new("b", axis(log, unit), ("bound", "SLO")).order(RowOrder::TightestFirst);
        let bullets = rows.iter().fold(bullets, |b, (name, v, t)| b.row(name, *v, *t));
        let group = |b: Bars| rows.iter().fold(b, |b, (name, v, t)| b.row(name, [*v, *t]));
        let grouped = group(Bars::grouped("g", ("load", unit), ["a", "b"])).limit(1.0, "limit");
        let stacked = group(Bars::stacked("s", ("load", unit), ["a", "b"]));
        let mut table = Table::new([Column::text("name"), Column::number("value")]);
        for (name, v, _) in &rows {
            table.push([name.as_str().into(), Cell::number(*v, unit).status(Status::Bad)]);
        }
        let html = Page::new("t").section("s", [bullets.into(), grouped.into(), stacked.into(), table.into()]).to_html();
        let texts = texts(&html);
        for (name, ..) in &rows {
            let safe = name.replace(['\u{FFFE}', '\u{FFFF}'], "\u{FFFD}");
            prop_assert!(texts.iter().any(|t| t.contains(safe.trim())), "{name}");
        }
    }
}

#[test]
fn names_are_text_wherever_they_appear() {
    let evil = "</title></script><script>alert(1)</script>\"'&<img src=x onerror=alert(2)>";
    let chart = Chart::new(evil, Axis::linear(evil, Unit::Plain), Axis::linear(evil, Unit::Plain))
        .series(Series::line(evil, [(0.0, 1.0), (1.0, 2.0)]))
        .series(Series::points(evil, [(0.0, 1.0)]))
        .reference(Reference::y(1.5, evil))
        .marker(Marker::new(0.5, 1.5, evil))
        .note(evil);
    let html = Page::new(evil)
        .lead(evil)
        .footer(evil)
        .section(
            evil,
            [
                chart.into(),
                Block::paragraph(evil),
                Block::Preformatted(evil.into()),
                Block::fold(evil, [vec![KeyFigure::new(evil, evil)].into()]),
                Table::new([Column::text(evil)]).caption(evil).row([evil.into()]).into(),
                Bars::grouped(evil, (evil, Unit::Plain), [evil, evil])
                    .row(evil, [1.0, 2.0])
                    .limit(1.0, evil)
                    .into(),
                Bullets::new(evil, Axis::linear(evil, Unit::Plain), (evil, evil)).row(evil, 1.0, 2.0).into(),
            ],
        )
        .to_html();
    let document = parse(&html);
    let count = |tag: &str| document.descendants().filter(|n| n.has_tag_name(tag)).count();
    assert_eq!((count("script"), count("img")), (1, 0));
    let handlers =
        document.descendants().flat_map(|n| n.attributes()).filter(|a| a.name().starts_with("on")).count();
    assert_eq!(handlers, 0);
}

#[test]
fn a_page_loads_nothing_and_repeats_nothing_in_identifiers() {
    let chart = || {
        Chart::new("c", axis(false, Unit::Plain), axis(true, Unit::Plain))
            .series(Series::area("", [(1.0, 1.0)]))
    };
    let bars = Bars::stacked("b", ("", Unit::Plain), ["a", "b", "c"]).row("r", [1.0, 2.0, 3.0]);
    let make = || {
        Page::new("t")
            .section("s", [chart().into(), chart().into(), bars.clone().into(), bars.clone().into()])
            .to_html()
    };
    let html = make();
    assert_eq!(html, make(), "same input, same bytes");
    let document = parse(&html);
    let values = |names: &[&str]| {
        let all = document.descendants().flat_map(|n| n.attributes());
        all.filter(|a| names.contains(&a.name())).map(|a| a.value().to_owned()).collect::<Vec<_>>()
    };
    assert!(values(&["src", "href", "action", "data"]).is_empty());
    let mut ids = values(&["id"]);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), values(&["id"]).len());
}

#[test]
fn what_cannot_be_drawn_is_said() {
    let log = |points: &[(f64, f64)]| {
        page(
            Chart::new("c", axis(true, Unit::Plain), axis(true, Unit::Plain))
                .series(Series::line("", points.to_vec())),
        )
    };
    assert!(says(&log(&[]), "no data"));
    let html = log(&[(1.0, 0.0), (2.0, f64::NAN), (3.0, f64::INFINITY), (4.0, 1.0)]);
    assert!(says(&html, "3 points not drawn: 2 not finite, 1 at or below zero on a log axis."));
    assert!(says(&log(&[(0.0, 1.0)]), "no data") && says(&log(&[(0.0, 1.0)]), "1 point not drawn"));
    assert!(says(&page(Bars::grouped("b", ("", Unit::Plain), ["a"])), "no data"));
    assert!(says(&page(Bullets::new("b", axis(false, Unit::Plain), ("v", "t"))), "no data"));
    assert!(says(&page(Table::new([Column::text("a")])), "no data"));
    let unbounded =
        Bullets::new("b", axis(true, Unit::Seconds), ("bound", "SLO")).row("w", f64::INFINITY, 0.1);
    assert!(says(&page(unbounded), "✕ unbounded / 100ms"));
}

/// A page without charts has neither their script nor their data, and a chart without data offers none.
#[test]
fn only_charts_have_the_script_of_charts() {
    let script = "var charted";
    let table = page(Table::new([Column::text("a")]).row(["b".into()]));
    assert!(!table.contains(script) && !table.contains("data-chart=\""));
    assert!(!Page::new("t").to_served_html(&Site::new("n")).contains(script));
    assert!(
        Page::new("t").to_served_html(&Site::new("n").stream("/s")).contains(script),
        "it may get a chart"
    );
    let empty = Chart::new("c", axis(false, Unit::Plain), axis(false, Unit::Plain));
    let folded = page(Block::fold("more", [Block::grid(2, [empty.clone().into()])]));
    assert!(folded.contains(script) && !folded.contains("data-chart=\""));
    let full = page(empty.series(Series::line("a", [(0.1, 1e-9), (0.2, f64::NAN), (1.0 / 3.0, 5.0)])));
    assert_eq!(full.matches("data-chart=\"").count(), 1);
    let document = parse(&full);
    let data = document.descendants().find_map(|node| node.attribute("data-chart")).unwrap();
    assert!(data.contains(r#""p":[0.1,1e-9,null,null,0.3333333333333333,5]"#), "{data}");
}

#[test]
fn long_series_become_short_drawings() {
    let points: Vec<(f64, f64)> = (0..100_000).map(|i| (f64::from(i), f64::from(i * 7919 % 1000))).collect();
    for series in
        [Series::line("a", points.clone()), Series::steps("a", points.clone()), Series::points("a", points)]
    {
        let html = page(Chart::new("c", axis(false, Unit::Plain), axis(false, Unit::Plain)).series(series));
        assert!(html.len() < 300_000, "{} bytes", html.len());
    }
}

#[test]
fn a_thousand_rows_show_the_tightest_and_fold_the_others() {
    let dots = Dots::new("d", axis(true, Unit::Seconds), ["a", "b"], "SLO")
        .row("w", [Some(0.1), None], 0.2)
        .row("<v>", [Some(f64::INFINITY), Some(0.3)], 0.2);
    let html = page(dots);
    assert!(
        says(&html, "2 values have no point") && says(&html, "w, a: 100ms") && says(&html, "<v>, b: 300ms")
    );
    let bullets = Bullets::new("b", axis(false, Unit::Seconds), ("bound", "SLO"));
    let bullets = (0..1000).fold(bullets, |b, i| b.row(format!("w{i}"), f64::from(i), 998.5));
    let html = page(bullets);
    let document = parse(&html);
    let fold = document.descendants().find(|n| n.has_tag_name("details")).unwrap();
    let names = |node: Node<'_, '_>| {
        let names = node.descendants().filter(|n| n.attribute("class") == Some("name end"));
        names.filter_map(|n| n.text().map(str::to_owned)).collect::<Vec<_>>()
    };
    for screen in ["wide", "middle", "narrow"] {
        let drawing = document.descendants().find(|n| n.attribute("class") == Some(screen)).unwrap();
        assert_eq!(names(drawing).len(), 1000, "{screen}");
        assert_eq!(names(drawing)[0], "w999");
    }
    assert_eq!(names(fold).len(), 960);
    assert!(says(&html, "1 of 1000"));
}

/// Shortened in the middle to the room beside a chart on a phone, both names would read alike.
#[test]
fn names_that_do_not_fit_beside_their_rows_are_whole_above_them() {
    let names = ["effective-bandwidth of the first server", "effective-bandwidth-even of the first server"];
    let bars = Bars::grouped("b", ("", Unit::Plain), ["a"]).row(names[0], [1.0]).row(names[1], [2.0]);
    let found = texts(&page(bars));
    for name in names {
        assert_eq!(found.iter().filter(|text| *text == name).count(), 3, "{name}: {found:?}");
    }
}

#[test]
fn pages_of_several_sections_list_them_below_the_answer() {
    let paragraph = || [Block::paragraph("x")];
    let one =
        Page::new("t").section("", paragraph()).section("first", paragraph()).section("second", paragraph());
    assert!(!one.to_html().contains("<nav"), "two sections need no list");
    let html = one.section("third", paragraph()).to_html();
    let document = parse(&html);
    let links: Vec<_> = document.descendants().filter(|n| n.has_tag_name("a")).collect();
    assert_eq!(links.iter().filter_map(Node::text).collect::<Vec<_>>(), ["first", "second", "third"]);
    for link in links {
        let target = link.attribute("href").and_then(|href| href.strip_prefix('#')).unwrap();
        let section = document.descendants().find(|n| n.attribute("id") == Some(target)).unwrap();
        assert_eq!(section.first_element_child().and_then(|heading| heading.text()), link.text());
    }
    assert!(html.find("<nav").unwrap() > html.find("<p>x</p>").unwrap(), "the answer comes first");
}

#[test]
fn a_long_name_is_shortened_and_whole_in_its_tooltip() {
    let name = "tenant-α-".repeat(40);
    let html = page(Bars::grouped("b", ("", Unit::Plain), ["a"]).row(&name, [1.0]));
    assert!(says(&html, "…") && says(&html, &name));
}

#[test]
fn stacked_layers_are_areas_with_keys() {
    let layers = [("in".to_owned(), vec![1.0, 2.0]), ("out".to_owned(), vec![3.0, 4.0])];
    let chart =
        Chart::new("c", axis(false, Unit::Plain), axis(false, Unit::Plain)).all(stack(&[0.0, 1.0], layers));
    let html = page(chart);
    assert_eq!(html.matches("class=\"area\"").count(), 3 * 4, "two layers, two keys, for three screens");
}

#[test]
fn served_pages_link_and_ask_and_stay_well_formed() {
    let evil = "\"'><script>alert(1)</script>&amp;";
    let table = Table::new([Column::name("a")]).row([Cell::text(evil).link(evil)]);
    let form = Form::new(evil, evil).hidden("next", evil).secret("token", evil);
    let links = Block::Links(vec![Link::new(evil, evil).current(true)]);
    let site = Site::new("n0nce").links([Link::new(evil, evil)]).form(form.clone()).stream(evil);
    let html = Page::new(evil).section(evil, [table.into(), form.into(), links]).to_served_html(&site);
    let document = parse(&html);
    let scripts: Vec<_> = document.descendants().filter(|node| node.has_tag_name("script")).collect();
    assert_eq!(scripts.len(), 1);
    assert_eq!(scripts[0].attribute("nonce"), Some("n0nce"));
    for (tag, attribute, count) in [("a", "href", 3), ("form", "action", 2), ("body", "data-stream", 1)] {
        let values: Vec<_> = document.descendants().filter(|node| node.has_tag_name(tag)).collect();
        assert_eq!(values.len(), count, "{tag}");
        assert!(values.iter().all(|node| node.attribute(attribute) == Some(evil)), "{tag}");
    }
    assert_eq!(
        document.descendants().filter(|node| node.attribute("aria-current") == Some("page")).count(),
        1
    );
}
