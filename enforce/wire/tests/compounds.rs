//! Every NFSv4 operation is skipped exactly: an encoder of its own, written from the XDR of the RFCs, puts each operation
//! with random arguments in front of a READ, which is found only if nothing is skipped too much or too little.

mod common;

use common::{Side, Watch};
use proptest::prelude::*;
use units::Bytes;
use wire::{RequestClass, RequestHead};

/// XDR under construction, with random content.
struct Xdr<'a> {
    out: Vec<u8>,
    random: &'a mut dyn FnMut() -> u8,
}

/// Steps that write arguments, one per part of the XDR.
impl Xdr<'_> {
    fn word(&mut self, word: u32) -> &mut Self {
        self.out.extend(word.to_be_bytes());
        self
    }

    fn long(&mut self, long: u64) -> &mut Self {
        self.out.extend(long.to_be_bytes());
        self
    }

    /// Random bytes, a multiple of four.
    fn bytes(&mut self, count: usize) -> &mut Self {
        for _ in 0..count {
            let byte = (self.random)();
            self.out.push(byte);
        }
        self
    }

    fn any_word(&mut self) -> &mut Self {
        self.bytes(4)
    }

    fn any_long(&mut self) -> &mut Self {
        self.bytes(8)
    }

    fn state(&mut self) -> &mut Self {
        self.bytes(16)
    }

    fn opaque(&mut self) -> &mut Self {
        let len = usize::from((self.random)() % 23);
        self.word(u32::try_from(len).unwrap()).bytes(len);
        self.out.resize(self.out.len().next_multiple_of(4), 0);
        self
    }

    fn bitmap(&mut self) -> &mut Self {
        let len = u32::from((self.random)() % 4);
        self.word(len).bytes(4 * len as usize)
    }

    fn attributes(&mut self) -> &mut Self {
        self.bitmap().opaque()
    }

    /// A number below `most`, and so many times what `each` writes.
    fn array(&mut self, most: u8, each: impl Fn(&mut Self) -> &mut Self) -> &mut Self {
        let count = (self.random)() % most;
        self.word(count.into());
        for _ in 0..count {
            each(self);
        }
        self
    }

    fn choose(&mut self, of: u32) -> u32 {
        u32::from((self.random)()) % of
    }

    fn place(&mut self) -> &mut Self {
        let kind = 1 + self.choose(3);
        self.word(kind).opaque();
        if kind == 3 { self.opaque() } else { self }
    }

    fn callback_security(&mut self) -> &mut Self {
        self.array(4, |xdr| match xdr.choose(3) {
            0 => xdr.word(0),
            1 => xdr.word(1).any_word().opaque().any_word().any_word().array(17, |xdr| xdr.any_word()),
            _ => xdr.word(6).any_word().opaque().opaque(),
        })
    }

    fn channel(&mut self) -> &mut Self {
        self.bytes(24).array(2, |xdr| xdr.any_word())
    }
}

/// The numbers of all operations.
fn operations() -> impl Iterator<Item = u32> {
    3..=75
}

/// Appends an operation; the bytes that it reads and writes.
fn operation(xdr: &mut Xdr<'_>, number: u32) -> (u64, u64) {
    xdr.word(number);
    match number {
        25 | 68 | 38 | 59 | 60 | 62 | 70 | 71 => return data_operation(xdr, number),
        3 | 19 | 52 | 58 => xdr.any_word(),
        4 => xdr.any_word().state(),
        5 => xdr.any_long().any_word(),
        6 => {
            let kind = 1 + xdr.choose(7);
            xdr.word(kind);
            match kind {
                3 | 4 => xdr.any_long(),
                5 => xdr.opaque(),
                _ => xdr,
            }
            .opaque()
            .attributes()
        }
        7 | 30 | 57 => xdr.any_long(),
        8 | 44 | 45 | 66 | 67 => xdr.state(),
        9 => xdr.bitmap(),
        10 | 16 | 23 | 24 | 27 | 31 | 32 => xdr,
        11 | 15 | 22 | 28 | 33 | 72 | 75 => xdr.opaque(),
        12 => {
            xdr.any_word().any_word().any_long().any_long();
            if xdr.choose(2) == 1 {
                xdr.word(1).any_word().state().any_word().any_long().opaque()
            } else {
                xdr.word(0).state().any_word()
            }
        }
        13 => xdr.any_word().any_long().any_long().any_long().opaque(),
        14 => xdr.any_word().any_word().state().any_long().any_long(),
        17 | 37 => xdr.attributes(),
        18 => open(xdr),
        20 => xdr.state().any_word(),
        21 => xdr.state().any_word().any_word().any_word(),
        26 => xdr.any_long().any_long().any_word().any_word().bitmap(),
        29 | 54 => xdr.opaque().opaque(),
        34 => xdr.state().attributes(),
        35 => xdr.any_long().opaque().any_word().opaque().opaque().any_word(),
        36 => xdr.any_long().any_long(),
        39 => xdr.any_long().opaque(),
        _ => later_operation(xdr, number),
    };
    (0, 0)
}

fn open<'a, 'b>(xdr: &'a mut Xdr<'b>) -> &'a mut Xdr<'b> {
    xdr.any_word().any_word().any_word().any_long().opaque();
    if xdr.choose(2) == 0 {
        xdr.word(0);
    } else {
        let mode = xdr.choose(4);
        xdr.word(1).word(mode);
        if mode >= 2 {
            xdr.any_long();
        }
        if mode != 2 {
            xdr.attributes();
        }
    }
    let claim = xdr.choose(7);
    xdr.word(claim);
    match claim {
        0 | 3 => xdr.opaque(),
        1 => xdr.any_word(),
        2 => xdr.state().opaque(),
        5 => xdr.state(),
        _ => xdr,
    }
}

/// Operations of NFSv4.1 and later.
fn later_operation<'a, 'b>(xdr: &'a mut Xdr<'b>, number: u32) -> &'a mut Xdr<'b> {
    match number {
        40 => xdr.any_word().callback_security(),
        41 => xdr.state().any_word().any_word(),
        42 => {
            xdr.any_long().opaque().any_word();
            let how = xdr.choose(3);
            xdr.word(how);
            if how > 0 {
                xdr.bitmap().bitmap();
            }
            if how == 2 {
                xdr.array(3, |xdr| xdr.opaque()).array(3, |xdr| xdr.opaque()).any_word().any_word();
            }
            xdr.array(2, |xdr| xdr.opaque().opaque().any_long().any_word())
        }
        43 => xdr.any_long().any_word().any_word().channel().channel().any_word().callback_security(),
        46 => xdr.any_word().bitmap().bytes(12).bytes(12).bitmap().bitmap(),
        47 => xdr.state().any_word().any_word().bitmap(),
        48 => xdr.any_word().any_word().any_long().any_long(),
        49 => {
            xdr.any_long().any_long().any_word().state();
            for len in [8, 12] {
                let there = xdr.choose(2);
                xdr.word(there).bytes(if there == 1 { len } else { 0 });
            }
            xdr.any_word().opaque()
        }
        50 => xdr.bytes(12).any_long().any_long().any_long().state().any_word(),
        51 => {
            xdr.bytes(12);
            let kind = 1 + xdr.choose(3);
            xdr.word(kind);
            if kind == 1 { xdr.any_long().any_long().state().opaque() } else { xdr }
        }
        53 => xdr.state().bytes(16),
        55 => xdr.array(5, |xdr| xdr.state()),
        56 => match xdr.choose(3) {
            0 => xdr.any_word().word(1).any_word(),
            kind => xdr.any_word().word(2 + 2 * kind),
        },
        61 => xdr.state().place(),
        63 => xdr.state().any_long().any_long().bitmap(),
        64 => xdr.any_long().any_long().state().array(4, |xdr| xdr.state().any_word().any_word()),
        65 => xdr.any_long().any_long().state().bytes(32).state().any_word().opaque(),
        69 => xdr.state().any_long().any_word(),
        73 => xdr.any_word().opaque().opaque(),
        74 => xdr.any_long().any_word(),
        _ => unreachable!("operation {number}"),
    }
}

/// Operations that read or write.
fn data_operation(xdr: &mut Xdr<'_>, number: u32) -> (u64, u64) {
    let length = u64::from(xdr.choose(200)) << xdr.choose(20);
    let count = u32::try_from(length).unwrap();
    match number {
        25 | 68 => {
            xdr.state().any_long().word(count);
            return (length, 0);
        }
        38 => {
            xdr.state().any_long().any_word();
            let before = xdr.out.len();
            xdr.opaque();
            let data = u32::from_be_bytes(xdr.out[before..before + 4].try_into().unwrap());
            return (0, data.into());
        }
        59 | 62 => xdr.state().any_long().long(length),
        60 => {
            xdr.state().state().any_long().any_long().long(length).any_word().any_word().array(3, Xdr::place)
        }
        70 => {
            xdr.state().any_word().any_long().long(length).long(3).any_long().any_word().any_long().opaque();
            return (0, 3 * length);
        }
        _ => xdr.state().state().any_long().any_long().long(length),
    };
    (0, length)
}

/// A record in fragments of at most `cut` bytes, which holds a compound of the operations.
fn record(operations: &[u8], count: u32, cut: usize) -> Vec<u8> {
    let mut body: Vec<u8> = [7, 0, 2, 100_003, 4, 1, 0, 0, 0, 0, 0, 2, count]
        .iter()
        .flat_map(|word: &u32| word.to_be_bytes())
        .collect();
    body.extend(operations);
    let mut out = Vec::new();
    let pieces = body.len().div_ceil(cut);
    for (index, piece) in body.chunks(cut).enumerate() {
        let last = u32::from(index + 1 == pieces) << 31;
        out.extend((u32::try_from(piece.len()).unwrap() | last).to_be_bytes());
        out.extend(piece);
    }
    out
}

fn head_of(record: &[u8]) -> RequestHead {
    let mut watch = Watch::rpc();
    watch.feed(Side::Client, record).expect("well-formed");
    watch.requests()[0]
}

const READ: [u32; 8] = [25, 1, 2, 3, 4, 0, 77, 1000];

fn read_behind(xdr: &mut Xdr<'_>) {
    for word in READ {
        xdr.word(word);
    }
}

fn class(read: u64, written: u64, writes: bool) -> RequestClass {
    let bytes = Bytes(read + written);
    if writes { RequestClass::Write(bytes) } else { RequestClass::Read(bytes) }
}

const fn writes(number: u32) -> bool {
    matches!(number, 38 | 59 | 60 | 62 | 70 | 71)
}

proptest! {
    #[test]
    fn each_operation_is_skipped_exactly(random in proptest::collection::vec(any::<u8>(), 64)) {
        let mut bytes = random.iter().copied().cycle();
        for number in operations() {
            let mut next = || bytes.next().unwrap();
            let mut xdr = Xdr { out: Vec::new(), random: &mut next };
            let (read, written) = operation(&mut xdr, number);
            read_behind(&mut xdr);
            let head = head_of(&record(&xdr.out, 2, usize::MAX));
            prop_assert_eq!(head.class, class(read + 1000, written, writes(number)), "operation {}", number);
        }
    }

    #[test]
    fn compounds_of_any_operations(
        random in proptest::collection::vec(any::<u8>(), 1..600),
        numbers in proptest::collection::vec(3..=75u32, 0..12),
        cut in 1..400usize,
    ) {
        let mut bytes = random.iter().copied().cycle();
        let mut next = || bytes.next().unwrap();
        let mut xdr = Xdr { out: Vec::new(), random: &mut next };
        let mut read = 1000;
        let mut written = 0;
        for &number in &numbers {
            let (more_read, more_written) = operation(&mut xdr, number);
            (read, written) = (read + more_read, written + more_written);
        }
        read_behind(&mut xdr);
        // Heads end at 4 KiB, marks included.
        prop_assume!(xdr.out.len() < 1800);
        let count = u32::try_from(numbers.len()).unwrap() + 1;
        let expected = class(read, written, numbers.iter().any(|&number| writes(number)));
        prop_assert_eq!(head_of(&record(&xdr.out, count, usize::MAX)).class, expected);
        // Many small fragments need a mark each, and data in later fragments are not searched.
        if expected == class(read, 0, false) && xdr.out.len() / cut < 300 {
            prop_assert_eq!(head_of(&record(&xdr.out, count, cut)).class, expected, "in fragments of {}", cut);
        }
    }
}

/// What a number in no RFC hides is not found; what stands before it is.
#[test]
fn the_unknown_ends_the_search() {
    for number in [0, 1, 2, 76, 10_044] {
        let mut none = || 0;
        let mut xdr = Xdr { out: Vec::new(), random: &mut none };
        read_behind(&mut xdr);
        xdr.word(number);
        read_behind(&mut xdr);
        assert_eq!(head_of(&record(&xdr.out, 3, usize::MAX)).class, RequestClass::Read(Bytes(1000)));
    }
}

/// The place of a write is that of the file that is written: a copy writes to the current file, which can be a saved one.
#[test]
fn the_current_file_is_followed() {
    let mut none = || 0;
    let mut xdr = Xdr { out: Vec::new(), random: &mut none };
    let read_of = |xdr: &mut Xdr<'_>| {
        let head = head_of(&record(&xdr.out, 6, usize::MAX));
        head.position.expect("a read has a place").object
    };
    let mut with = |handles: [u32; 2], restore: u32| {
        xdr.out.clear();
        xdr.word(22)
            .word(4)
            .word(handles[0])
            .word(32)
            .word(22)
            .word(4)
            .word(handles[1])
            .word(restore)
            .word(10);
        read_behind(&mut xdr);
        read_of(&mut xdr)
    };
    let restored = with([1, 2], 31);
    let kept = with([1, 2], 10);
    assert_eq!(restored, with([1, 9], 31));
    assert_eq!(kept, with([9, 2], 10));
    assert!(restored != kept && with([1, 2], 16) == 0, "LOOKUPP leaves no known file");
}
