//! Readers on arbitrary and damaged text: they end, and count what they cannot read.

use limits::{AuditSettings, READERS, SourceText, audit, survey_of};
use proptest::prelude::*;

/// Names by which readers recognise files.
const NAMES: [&str; 6] =
    ["a/io.max", "a/cpu.max", "b.service", "c.txt", "d.yaml", "blkio/e/blkio.throttle.read_bps_device"];

/// Beginnings by which readers recognise text.
const HEADS: [&str; 8] = [
    "",
    "8:0 rbps=",
    "<domain><name>x</name><devices><disk><iotune>",
    "qemu-system-x86_64 -name x -drive file=y,throttling.bps-total=",
    "class htb 1:1 root rate ",
    "WHO MASK LEVEL OPTION VALUE RO\nosd advanced osd_mclock_profile ",
    "apiVersion: v1\nkind: StorageClass\nparameters: ",
    "[Service]\nIOReadBandwidthMax=/dev/sda ",
];

proptest! {
    #[test]
    fn any_text_is_read_or_counted(name in 0..NAMES.len(), head in 0..HEADS.len(), rest in "(?s).{0,300}") {
        let survey = survey_of(vec![SourceText::new(NAMES[name], format!("{}{rest}", HEADS[head]))]);
        prop_assert!(survey.limits.iter().all(|limit| limit.value > 0.0 && limit.value.is_finite()));
        prop_assert!(survey.limits.iter().all(|limit| limit.origin.line > 0));
        let answer = audit(&survey, &AuditSettings::default());
        prop_assert!(answer.places.iter().all(|sum| sum.ceilings >= 0.0));
    }

    #[test]
    fn every_reader_takes_any_text(text in "(?s).{0,200}") {
        for reader in &READERS {
            let recognised = (reader.recognises)(&SourceText::new("x.txt", text.as_str()));
            prop_assert!(!recognised || !text.is_empty());
        }
    }
}

#[test]
fn a_million_lines_are_bounded() {
    let line = "8:0 rbps=1000 wbps=1000\n";
    let survey = survey_of(vec![SourceText::new("a/io.max", line.repeat(600_000))]);
    assert_eq!((survey.limits.len(), survey.dropped), (1_000_000, 200_000));
}

#[test]
fn entities_and_deep_nesting_are_refused() {
    let laughs = "<!DOCTYPE d [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]><domain><name>&b;</name></domain>";
    let deep = "apiVersion: ".to_owned() + &"[".repeat(5_000);
    let survey = survey_of(vec![SourceText::new("d.xml", laughs), SourceText::new("k.yaml", deep)]);
    assert_eq!(survey.unreadable_count, 2, "{:?}", survey.unreadable);
}
