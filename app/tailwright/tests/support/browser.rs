//! Pages in a browser: at the widths of a phone, half a screen and a screen, in both themes, and without scripts.

use super::Folder;
use serde_json::Value;
use std::process::Command;

/// Widths of screens in pixels.
const WIDTHS: [u32; 3] = [400, 800, 1280];

const THEMES: [&str; 2] = ["light", "dark"];

/// What a page must not have, each a list of where it does: text that is cut without a cue, text of charts that is too
/// small, charts without a sentence of how to read them, text or charts outside their box, columns without room, text over
/// text, ticks with zeros to be counted, axes with fewer than two ticks, text without contrast, charts that show no value to
/// the pointer, lines that are drawn twice.
pub(crate) const PROBLEMS: [&str; 11] = [
    "cut",
    "small",
    "silent",
    "outside",
    "squeezed",
    "overlapping",
    "noisy",
    "bare",
    "faint",
    "dumb",
    "repeated",
];

const MEASURE: &str = include_str!("measure.js");

/// Judges a page at all widths, in both themes, and without scripts: nothing is lost, and the small print names `command`.
#[track_caller]
pub(crate) fn judge(folder: &Folder, page: &str, command: &str) {
    let Some(views) = measured(folder, page) else { return };
    let expected = THEMES.iter().flat_map(|theme| WIDTHS.map(|width| (width, *theme == "dark", true)));
    let expected: Vec<_> = expected.chain([(WIDTHS[0], false, false)]).collect();
    assert_eq!(views.len(), expected.len());
    for (view, (width, is_dark, is_scripted)) in views.iter().zip(expected) {
        let at = format!("{page} of {command} at {width}, dark: {is_dark}, scripts: {is_scripted}");
        assert_eq!(view["width"].as_u64(), Some(u64::from(width)), "{at}: {view}");
        assert_eq!(
            (view["isDark"].as_bool(), view["isScripted"].as_bool()),
            (Some(is_dark), Some(is_scripted)),
            "{at}"
        );
        let number = |name: &str| view[name].as_u64().expect("a number");
        assert!(number("content") <= u64::from(width), "{at} scrolls sideways: {view}");
        for problem in PROBLEMS {
            let found = view[problem].as_array().expect("a list");
            assert!(found.is_empty(), "{problem}, {at}: {found:#?}");
        }
        assert!(number("charts") >= number("figures"), "{at}: a figure without a drawing: {view}");
        let footer = view["footer"].as_str().expect("text");
        assert!(footer.contains("GMT by tailwright") && footer.contains(command), "{at}: {footer}");
    }
}

/// A page as the browser measures it; `None` where there is no browser.
fn measured(folder: &Folder, page: &str) -> Option<Vec<Value>> {
    let browser = testkit::program("chromium")?;
    folder.write("frames.html", &frames(&folder.read(page)));
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom"])
        .args(["--window-size=1400,1000", "--virtual-time-budget=60000"])
        .arg(format!("--user-data-dir={}", folder.join("browser").display()))
        .arg(format!("file://{}", folder.join("frames.html").display()))
        .output()
        .expect("the browser starts");
    let text = String::from_utf8_lossy(&output.stdout)
        .replace("&gt;", ">")
        .replace("&lt;", "<")
        .replace("&amp;", "&");
    let Some(found) = text.rsplit("MEASURED").nth(1).filter(|found| found.starts_with('[')) else {
        testkit::skip(&format!(
            "the browser does not measure: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ));
        return None;
    };
    Some(serde_json::from_str(found).expect("the script writes JSON"))
}

/// A document with the page in a frame for each width and theme, and in one without scripts.
fn frames(page: &str) -> String {
    let frame = |page: &str, width: u32, theme: &str| {
        let source = page.replace('&', "&amp;").replace('"', "&quot;");
        let style = format!("width:{width}px;height:900px;border:0;color-scheme:{theme}");
        format!("<iframe style=\"{style}\" srcdoc=\"{source}\"></iframe>")
    };
    let (before, script) = page.split_once("<script>").expect("pages have one script");
    let (_, after) = script.split_once("</script>").expect("it ends");
    let mut frames = String::new();
    for theme in THEMES {
        WIDTHS.into_iter().for_each(|width| frames.push_str(&frame(page, width, theme)));
    }
    frames.push_str(&frame(&format!("{before}{after}"), WIDTHS[0], THEMES[0]));
    format!("<!DOCTYPE html><meta charset=\"utf-8\"><script>{MEASURE}</script>{frames}")
}
