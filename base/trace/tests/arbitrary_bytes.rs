//! No parser panics on any input: arbitrary bytes, and valid traces with some bytes changed.

mod common;
#[path = "common/exercise.rs"]
mod exercise;

use common::{Folder, requests, write};
use exercise::exercise;
use proptest::prelude::*;
use trace::TraceFormat;

/// Words from which nearly valid lines are made.
fn token() -> impl Strategy<Value = Vec<u8>> {
    let known = prop_oneof![
        Just("0x10"),
        Just("DiskRead"),
        Just("Write"),
        Just("r"),
        Just("Q"),
        Just("C"),
        Just("8,0"),
        Just("+"),
        Just("["),
        Just("0.5"),
        Just("."),
        Just("18446744073709551615"),
        Just("99999999999999999999999"),
        Just("-1"),
        Just("wait"),
        Just("trim"),
        Just("fio version 2 iolog"),
        Just("fio version 3 iolog"),
        Just("arrival_ns,size_bytes,op"),
        Just("arrival_unix_ns,size_bytes,op,offset,response_ns,waited_ns,workload,client"),
        Just("1.5 IP 10.0.0.1.999 > 10.0.0.9.2049: tcp 18446744073709551615"),
        Just("1.6 IP 10.0.0.9.2049 > 10.0.0.1.999: tcp 5"),
        Just("9,8,read,,7,6,mail,"),
        Just(","),
        Just(" "),
        Just("\n"),
        Just("\r\n"),
        Just("1"),
    ];
    prop_oneof![8 => known.prop_map(|word| word.as_bytes().to_vec()), 1 => proptest::collection::vec(any::<u8>(), 0..4)]
}

fn any_format() -> impl Strategy<Value = Option<TraceFormat>> {
    proptest::option::of(proptest::sample::select(TraceFormat::ALL.to_vec()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn arbitrary_bytes(content in proptest::collection::vec(any::<u8>(), 0..600), format in any_format(), lenient: bool) {
        exercise(&content, format, lenient);
    }

    #[test]
    fn nearly_valid_lines(tokens in proptest::collection::vec(token(), 0..80), format in any_format(), lenient: bool) {
        exercise(&tokens.concat(), format, lenient);
    }

    #[test]
    fn arbitrary_vscsi_records(body in proptest::collection::vec(any::<u8>(), 0..400), v2: bool, lenient: bool) {
        let (len, mark, version) = if v2 { (40, 3, 2) } else { (32, 15, 1) };
        let mut body = body;
        for record in body.chunks_exact_mut(len) {
            record[mark] = version;
        }
        exercise(&body, Some(TraceFormat::Vscsi), lenient);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn changed_bytes(
        requests in requests(1..40),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
        lenient: bool,
    ) {
        let folder = Folder::new();
        for format in TraceFormat::ALL.into_iter().filter(|format| format.is_writable()) {
            for ending in ["", ".gz", ".zst"] {
                let path = folder.file(&format!("t{ending}"));
                write(&path, format, &requests).unwrap();
                let mut content = std::fs::read(&path).unwrap();
                for (at, byte) in &changes {
                    let at = at.index(content.len());
                    content[at] = *byte;
                }
                exercise(&content, None, lenient);
                exercise(&content, Some(format), lenient);
                exercise(&content[..cut.index(content.len() + 1)], Some(format), lenient);
            }
        }
    }
}
