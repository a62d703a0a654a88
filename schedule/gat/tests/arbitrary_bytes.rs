//! The laws of the codec on random header values: arbitrary bytes, and pieces that look like members of ours. The same
//! checks as the fuzz target `tag_headers`.

mod common;

use common::exercise;
use proptest::prelude::*;

fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let text = proptest::sample::select(vec![
        "tailwright-start",
        "tailwright-deadline",
        "=",
        ",",
        ";",
        " ",
        "\t",
        "\n",
        "%",
        "%2D",
        "%20",
        "%25",
        "%252D",
        "+",
        "tailwright",
        "start",
        "-",
        "1",
        "18446744073709551616",
        "user=7",
        ";deadline=",
        "T",
        "\u{b}",
        "%C2%A0",
        "_",
    ]);
    prop_oneof![
        8 => text.prop_map(|text| text.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 1..4),
        1 => (0usize..9000).prop_map(|length| vec![b'a'; length]),
    ]
}

fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig { cases: default.cases.max(2000), ..default }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn arbitrary(content in proptest::collection::vec(any::<u8>(), 0..400)) {
        exercise(&content);
    }

    #[test]
    fn almost_members(pieces in proptest::collection::vec(pieces(), 0..24)) {
        exercise(&pieces.concat());
    }
}

#[test]
fn more_members_than_the_limit() {
    exercise("a=1,".repeat(400).as_bytes());
    exercise(format!("{},tailwright-start=1", "a=1,".repeat(400)).as_bytes());
}
