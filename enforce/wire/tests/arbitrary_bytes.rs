//! No parser panics, asks for too much or loses count, whatever it is given: arbitrary bytes, and bytes that begin
//! like messages. The same checks as the fuzz target `wire`.

mod common;
#[path = "common/exercise.rs"]
mod exercise;

use exercise::exercise;
use proptest::prelude::*;

fn words() -> impl Strategy<Value = Vec<u8>> {
    let text = proptest::sample::select(vec![
        "get ",
        "gets a b\r\n",
        "set k 0 0 5",
        " noreply",
        "\r\n",
        "\n",
        "mg ",
        "ms k 3 ",
        "q ",
        "O1",
        "mn\r\n",
        "VALUE k 0 3\r\n",
        "END\r\n",
        "VA 3 O1\r\n",
        "HD\r\n",
        "EN\r\n",
        "STORED\r\n",
        "ERROR\r\n",
        "STAT a b\r\n",
        "99999999999999999999",
        "1073741825",
        "stats\r\n",
        "lru_crawler metadump all\r\n",
        "lru_crawler mgdump all\r\n",
        "stats sizes_enable\r\n",
        "version\r\n",
        "VERSION 1\r\n",
        "quit\r\n",
        "delete k",
        "set k 0 0 1 noreply\r\nx\r\n",
        "NOT_FOUND\r\n",
        "CLIENT_ERROR x\r\n",
        "key=a\r\n",
        "NBDMAGIC",
        "IHAVEOPT",
        "GET / HTTP/1.1\r\n",
        "HEAD / HTTP/1.0\r\n",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 101 x\r\n",
        "Content-Length: 5\r\n",
        "Content-Length: 18446744073709551615\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "5;x=y\r\nhello\r\n",
        "0\r\n\r\n",
        "ffffffffffffffff\r\n",
        "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
        "*3\r\n$6\r\nclient\r\n$5\r\nreply\r\n",
        "*-1\r\n",
        "*9999999999\r\n",
        "$-1\r\n",
        "$5\r\nhello\r\n",
        "+OK\r\n",
        "%1\r\n",
        "|1\r\n",
        ">2\r\n",
        "PING\r\n",
        "\"get\" 'k\\'' \"\\x41\r\n",
        "*3\r\n$5\r\nBLPOP\r\n$1\r\nk\r\n$1\r\n0\r\n",
        "*4\r\n$5\r\nXREAD\r\n",
        "$5\r\nBLOCK\r\n",
        "$7\r\nSTREAMS\r\n",
        "*4\r\n$4\r\nEVAL\r\n$1\r\nx\r\n",
        "QUIT\r\n",
        "-ERR no\r\n",
    ]);
    let numbers = proptest::sample::select(vec![
        0u32,
        1,
        2,
        3,
        4,
        6,
        7,
        8,
        18,
        22,
        24,
        25,
        34,
        38,
        42,
        43,
        53,
        60,
        68,
        70,
        100_003,
        100_005,
        100_227,
        0x8000_0000,
        0x8000_0028,
        0x8000_0100,
        0x7fff_ffff,
        0x2560_9513,
        0x21e4_1c71,
        0x6744_6698,
        0x668e_33ef,
        0x6e8a_278c,
        0x8001_0000,
        0x8109_0003,
        u32::MAX,
    ]);
    prop_oneof![
        3 => text.prop_map(|text| text.as_bytes().to_vec()),
        6 => numbers.prop_map(|number| number.to_be_bytes().to_vec()),
        1 => Just(0x0003_e889_0455_65a9_u64.to_be_bytes().to_vec()),
        2 => proptest::collection::vec(any::<u8>(), 1..6),
    ]
}

/// Quick cases, so many of them; more if the environment says so.
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
    fn words_of_the_protocols(choice in any::<u8>(), turns in proptest::collection::vec((any::<bool>(), proptest::collection::vec(words(), 1..12)), 1..12)) {
        let mut content = vec![choice];
        for (server, words) in turns {
            let said = words.concat();
            for piece in said.chunks(128) {
                content.push(u8::try_from((piece.len() - 1) << 1).unwrap() | u8::from(server));
                content.extend(piece);
            }
        }
        exercise(&content);
    }
}
