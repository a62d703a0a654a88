//! Handshakes and commands with nbdkit, right and wrong ones, all sent at once.

use super::common::{Event, Side, Watch};
use super::corpus::{ComparisonCount, CorpusChoices, Ending, PATIENCE, converse, feed_pieces};
use super::nbd_server::NbdProcess;
use std::collections::HashMap;
use wire::ReplyExpectation;

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn option(number: u32, data: &[u8]) -> Vec<u8> {
    [b"IHAVEOPT", &words(&[number, u32::try_from(data.len()).unwrap()])[..], data].concat()
}

/// Some options that do not end the handshake, and one that does. Everything but a structured reply may be asked for
/// ahead of the answers; whether replies are structured is known before the first command.
fn handshake(choices: &mut CorpusChoices, structured: bool, by_name: bool) -> Vec<Vec<u8>> {
    let info = |number, name: &[u8], infos: &[u8]| {
        option(number, &[&words(&[u32::try_from(name.len()).unwrap()])[..], name, infos].concat())
    };
    let meta = [&words(&[0, 1, 15])[..], b"base:allocation"].concat();
    let long = vec![b'x'; 300];
    let odd = [
        option(3, b""),
        option(3, b"data"),
        info(6, b"", &[0, 0]),
        info(6, b"any", &[0, 1, 0, 3]),
        info(7, b"", &[0, 2, 0, 3]),
        option(5, b""),
        option(9, &meta),
        option(77, b"what is this"),
        option(77, &long),
        option(11, b""),
    ];
    let mut all: Vec<Vec<u8>> =
        (0..choices.below(6)).map(|_| odd[choices.below(odd.len())].clone()).collect();
    if structured {
        all.push(option(8, b""));
        if choices.below(2) == 0 {
            all.push(option(10, &meta));
        }
    }
    all.push(if by_name { option(1, b"any") } else { info(7, b"any", &[0, 1, 0, 3]) });
    all
}

/// A command of any kind, inside or outside the export; the bytes that it reads.
fn command(choices: &mut CorpusChoices, cookie: u64) -> (Vec<u8>, u32) {
    let kind = choices.of(&[0u16, 0, 0, 1, 1, 3, 4, 5, 6, 7, 8, 99]);
    let len = choices.of(&[0u32, 1, 512, 4096, 65_536, 100_000]);
    let offset = choices.of(&[0u64, 512, 4096, 500_000, 1 << 20, u64::MAX - 100, 1 << 40]);
    let flags = choices.of(&[0u16, 0, 0, 0, 1, 2, 4, 8, 16]);
    let mut out = 0x2560_9513_u32.to_be_bytes().to_vec();
    out.extend([flags.to_be_bytes(), kind.to_be_bytes()].concat());
    out.extend([cookie, offset].iter().flat_map(|number| number.to_be_bytes()));
    out.extend(len.to_be_bytes());
    if kind == 1 {
        out.extend(choices.bytes(len as usize));
    }
    (out, if kind == 0 { len } else { 0 })
}

/// The lengths of messages in front of `limit` bytes, as the protocol document has them. An option's replies are counted,
/// the rest are commands' with whether each is the last of its cookie.
fn boundaries(heard: &[u8], by_name: bool, options: usize, reads: &HashMap<u64, u32>) -> Vec<(usize, bool)> {
    let mut found = vec![(18, true)];
    let mut at = 18;
    let mut done = 0;
    let word = |at: usize| u32::from_be_bytes(heard[at..at + 4].try_into().unwrap());
    while done < options && at < heard.len() {
        if by_name && done + 1 == options {
            // Without zeroes, as the flags of both sides say.
            found.push((10, true));
            at += 10;
            break;
        }
        let kind = word(at + 12);
        let len = 20 + word(at + 16) as usize;
        let last = kind == 1 || kind >= 1 << 31;
        done += usize::from(last);
        found.push((len, last));
        at += len;
    }
    while at < heard.len() {
        let (len, last) = if word(at) == 0x6744_6698 {
            let cookie = u64::from_be_bytes(heard[at + 8..at + 16].try_into().unwrap());
            (16 + if word(at + 4) == 0 { reads[&cookie] as usize } else { 0 }, true)
        } else {
            assert_eq!(word(at), 0x668e_33ef, "a reply begins");
            (20 + word(at + 16) as usize, heard[at + 5] & 1 == 1)
        };
        found.push((len, last));
        at += len;
    }
    assert_eq!(at, heard.len(), "complete messages");
    found
}

pub(super) fn conversations() {
    let Some(mut server) = NbdProcess::start(|_| vec!["memory".into(), "1M".into()]) else { return };
    let mut choices = CorpusChoices::new(14);
    let mut counts = ComparisonCount::default();
    for round in 0..60 {
        let structured = round % 2 == 0;
        let by_name = round % 3 == 0;
        let options = handshake(&mut choices, structured, by_name);
        let mut commands = Vec::new();
        let mut reads = HashMap::new();
        for cookie in (1u64 << 33..).take(60) {
            let (bytes, len) = command(&mut choices, cookie);
            commands.push(bytes);
            reads.insert(cookie, len);
        }
        let goodbye = [&words(&[0x2560_9513, 2])[..], &[0; 20]].concat();
        let mut stream = server.connect();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut watch = Watch::nbd();
        let mut heard = Vec::new();
        // The greeting, then options and their replies, then everything else.
        let said = [words(&[3]), options.concat()].concat();
        let all_options = |heard: &[u8]| heard.len() > 18 && ends_handshake(heard, by_name, options.len());
        let writer = stream.try_clone().unwrap();
        let (greeting, ending) = converse(&mut stream, writer, &said, &mut choices, all_options);
        assert_eq!(ending, Ending::Done, "the export is granted");
        watch.feed(Side::Server, &greeting[..18]).unwrap();
        watch.feed(Side::Client, &said).unwrap();
        feed_pieces(&mut watch, &greeting[18..], &mut choices).expect("options are answered");
        assert_eq!(watch.wire.export_name(), Some(&b"any"[..]));
        heard.extend(greeting);
        let said = [commands.concat(), goodbye].concat();
        watch.feed(Side::Client, &said).unwrap();
        let writer = stream.try_clone().unwrap();
        let (answers, ending) = converse(&mut stream, writer, &said, &mut choices, |_| false);
        assert_eq!(ending, Ending::Closed, "the server hangs up behind the goodbye");
        feed_pieces(&mut watch, &answers, &mut choices).expect("commands are answered");
        heard.extend(answers);
        compare(&watch, &heard, by_name, options.len(), &reads);
        counts.answered += options.len() + commands.len();
        counts.silent += 2;
    }
    counts.print("NBD");
}

/// Whether all options have their last reply. What is incomplete counts as nothing.
fn ends_handshake(heard: &[u8], by_name: bool, options: usize) -> bool {
    let mut at = 18;
    let mut done = 0;
    while done < options {
        if by_name && done + 1 == options {
            return heard.len() >= at + 10;
        }
        let Some(head) = heard.get(at..at + 20) else { return false };
        let word = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
        at += 20 + word(16) as usize;
        done += usize::from(word(12) == 1 || word(12) >= 1 << 31);
    }
    heard.len() >= at
}

fn compare(watch: &Watch, heard: &[u8], by_name: bool, options: usize, reads: &HashMap<u64, u32>) {
    let replies = watch.replies();
    let found: Vec<(usize, bool)> =
        replies.iter().map(|(_, extent)| (usize::try_from(extent.len.0).unwrap(), extent.last)).collect();
    assert_eq!(found, boundaries(heard, by_name, options, reads), "the same messages");
    assert!(watch.is_drained() && watch.wire.in_flight() == 0, "every command has one last reply");
    assert!(replies[1..].iter().all(|(reply, _)| reply.is_solicited));
    let requests = watch.requests();
    assert_eq!(requests.len(), 1 + options + reads.len() + 1);
    let silent = requests.iter().filter(|request| request.reply == ReplyExpectation::Never).count();
    assert_eq!(silent, 2, "the client's flags and its goodbye");
    assert!(!watch.events.iter().any(|event| matches!(event, Event::Continued(..))));
}
