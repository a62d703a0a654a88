//! Text and meta commands with memcached: each alone with the version asked behind it, then many in pipelines.

use super::common::{Side, Watch};
use super::corpus::{ComparisonCount, CorpusChoices, Ending, PATIENCE, converse, feed_pieces};
use super::memcached_server::MemcachedProcess;
use wire::ReplyExpectation;

const VERSION: &[u8] = b"version\r\n";

/// Commands that are a line alone, one per line. Each is tried with several endings.
const LINES: &str = "get|get a|get a b none|gets a|gets  a  b|gat|gat 0|gat 0 a|gat 0 a b c d|gat x a|gats 0 a|bget a| get a||  |mg|mg a|mg a q|mg none q|\
mg a v q bad|mg none zzz q|mg a  q v|mg YQ== b q v|mg YQ== b k O1|mg === b q|mg a s v t f c O123 k|mg none v N30 q|mg a O1 O2|mn|mn q|mn foo|mn O1 q|\
me|me a|me none|me a q|me a b|me YQ== b|md|md q|md none|md none q|md none q zz|md a C1 q|md a I q|ma|ma none q|ma a q|ma n q|ma n v q|ma n N9 q D|\
ma n D2 q|ma n MD v|ma none N0 J13 v q|ms|verbosity|verbosity 0|verbosity x|verbosity 0 0|verbosity 0 x y z|cache_memlimit|cache_memlimit 64|\
cache_memlimit x|flush_all 900|flush_all x|flush_all 0 0 0|flush_all -1|touch|touch a|touch a 0|touch a x|touch none 0|touch a 0 x y|incr|incr a|\
incr a 1|incr n 1|incr n x|incr n 18446744073709551615|decr n 1|delete|delete a|delete a 0|delete a 5|delete none|delete a b c|lru|lru mode|\
lru mode flat|lru mode segmented|lru mode x|lru tune|lru tune 10 20 0.1 2.0|lru tune x y z w|lru temp_ttl|lru temp_ttl 5|lru x|slabs|slabs automove|\
slabs automove 0|slabs automove 1|slabs automove x|slabs reassign|slabs reassign 1 2|slabs reassign -1 2|slabs reassign x y|slabs x|lru_crawler|\
lru_crawler crawl|lru_crawler crawl all|lru_crawler crawl 1|lru_crawler crawl x|lru_crawler sleep 100|lru_crawler sleep x|lru_crawler tocrawl 5|\
lru_crawler tocrawl x|lru_crawler x|extstore|extstore recache_rate 5|extstore free_memchunks 1 5|extstore x y|debugtime|debugtime p|refresh_certs|\
misbehave|dump_perf|foo|version|version x|watch|watch x|proxy|STATS|GET a|stats|stats x|stats settings|stats items|stats slabs|stats sizes|\
stats sizes_enable|stats sizes_disable|stats sizes_enable x|stats conns|stats detail|stats detail on|stats detail dump|stats detail off|stats detail x|\
stats reset|stats cachedump|stats cachedump 1|stats cachedump 1 0|stats cachedump x y|stats cachedump 200 1|stats extstore|stats proxy|\
lru_crawler metadump all|lru_crawler metadump hash|lru_crawler metadump 1|lru_crawler metadump x|lru_crawler disable|lru_crawler metadump|lru_crawler mgdump all|lru_crawler enable";
/// What may stand behind a line: with the word that silences some commands in odd places, and odd ends of lines.
const ENDINGS: [&str; 9] = [
    "\r\n",
    " noreply\r\n",
    "\n",
    " noreply \r\n",
    " noreply x\r\n",
    " noreply\t\r\n",
    " \r\n",
    " noreply noreply\r\n",
    "\r\r\n",
];
/// Storage commands; `{}` is the length of the data.
const STORAGE: &str = "set a 0 0 {}|set a 5 0 {}|set a x 0 {}|set a -1 0 {}|set a 4294967295 0 {}|set a 4294967296 0 {}|set a 0 x {}|set a 0 -1 {}|\
set a 0 2147483648 {}|set a 0 99999999999999999999 {}|set a 0 1.5 {}|set a 0 0 {} foo|set a 0 0 {} foo noreply|set a 0 0 {} noreply|\
set a 0 0 {} noreply x|set a 0 0 0{}|set a 0 0 +{}|set a 0 0 {}x|set noreply 0 0 {}|add a 0 0 {}|add new 0 0 {}|replace a 0 0 {} noreply|\
append a 0 0 {}|prepend a 0 0 {} noreply|cas a 0 0 {} 1|cas a 0 0 {} 18446744073709551615|cas a 0 0 {} x|cas a 0 0 {} -1|cas a 0 0 {}|\
cas a 0 0 {} 1 x|cas a 0 0 {} 1 noreply|cas a 0 0 {} 1 x y|cas a 0 0 {} noreply|  set   a 0  0 {}  |ms a {}|ms a {} q|ms a {} noreply|ms a {} q z|\
ms a {} T|ms a {} Tx|ms a {} MX|ms a {} Fx|ms a {} C|ms a {} q q|ms a {} b|ms YQ== {} b k|ms a 0{}|ms a {}x|ms a +{}|ms a S{}|ms  a  {} c k b I|\
ms a {} q MS|ms none {} MR q O9|ms a {} C1 q O5 k|ms a {} A B C D E F G H I J K L M N P Q|ms a {} A B C D E F G H I J K L M N P Q R|ms a {} T0 q|\
ms a {} Oxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx|set a 0 0|set a|set|ms a|ms";

/// All requests; most have one of their own in the data, which must not be taken for a request.
fn corpus() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for line in LINES.split('|') {
        all.extend(ENDINGS.iter().map(|ending| [line, ending].concat().into_bytes()));
    }
    for line in STORAGE.split('|') {
        for (len, data) in [(5, "get a\r\n"), (5, "get a\n\n"), (0, "\r\n"), (5, "gets a\r\n")] {
            // The last is one byte too long: an error, and the rest is the next line.
            all.push(format!("{}\r\n{data}", line.replace("{}", &len.to_string())).into_bytes());
        }
    }
    let long = "k".repeat(251);
    for line in [
        "get {}",
        "get a {}",
        "mg {} q",
        "delete {} noreply",
        "incr {} 1 noreply",
        "touch {} 1 noreply",
        "gat 0 {}",
        "me {}",
        "md {} q",
    ] {
        all.push(format!("{}\r\n", line.replace("{}", &long)).into_bytes());
        all.push(format!("{}\r\n", line.replace("{}", &long[1..])).into_bytes());
    }
    let many = " a".repeat(900);
    for line in ["get", "gets", "gat 0", "mg", "delete", "verbosity", "mn", "foo"] {
        all.push(format!("{line}{many}\r\n").into_bytes());
    }
    for place in 19..25 {
        let before = "a ".repeat(place);
        let behind = " b".repeat(25 - place);
        all.push(format!("verbosity {before}noreply{behind}\r\n").into_bytes());
    }
    for zero in [
        "get a\0 noreply\r\n",
        "delete a\0 noreply\r\n",
        "set a\0b 0 0 5\r\nget a\r\n",
        "set a 0 0 5 \0noreply\r\nget a\r\n",
    ] {
        all.push(zero.as_bytes().to_vec());
    }
    for line in ["set big 0 0 2000000", "set big 0 0 2000000 noreply", "ms big 2000000 q", "ms big 2000000"] {
        all.push([line.as_bytes(), b"\r\n", &vec![b'z'; 2_000_000], b"\r\n"].concat());
    }
    all
}

/// Feeds a request, and the version behind it as a barrier or as the client's own; whether it may be silent, or why it
/// is refused.
fn ask(watch: &mut Watch, request: &[u8]) -> Result<bool, String> {
    watch.feed(Side::Client, request).map_err(|error| error.to_string())?;
    let heads = watch.requests();
    let may_be_silent = heads.iter().any(|head| head.reply != ReplyExpectation::Always);
    // The line behind data that are too long is a request of its own, and so are the two lines of data behind a storage
    // command that is refused.
    assert!(heads.len() <= 3, "one request: {:?}", String::from_utf8_lossy(request));
    Ok(may_be_silent)
}

/// Whether a request asks for all keys.
fn is_dump(request: &[u8]) -> bool {
    request.starts_with(b"lru_crawler m")
}

/// Whether as many versions were said, and nothing is behind the last.
fn ends_with_versions(heard: &[u8], count: usize) -> bool {
    heard.ends_with(b"\r\n")
        && heard.split_inclusive(|&byte| byte == b'\n').filter(|line| line.starts_with(b"VERSION ")).count()
            >= count
}

/// The number of answers in front of the last version, told by the lines that can only be inside or at the end of one.
fn answers(heard: &[u8]) -> usize {
    let lines: Vec<&[u8]> = heard.split_inclusive(|&byte| byte == b'\n').collect();
    let mut count = 0;
    let mut index = 0;
    let mut in_list = false;
    while index + 1 < lines.len() {
        let line = lines[index];
        index += 1;
        if line.starts_with(b"STAT sizes_status") && !lines[index].starts_with(b"END") {
            count += 1;
        } else if line.starts_with(b"VALUE ") || line.starts_with(b"VA ") {
            let words: Vec<&[u8]> = line.trim_ascii_end().split(|&byte| byte == b' ').collect();
            let is_meta = words[0] == b"VA";
            let len: usize =
                std::str::from_utf8(words[if is_meta { 1 } else { 3 }]).unwrap().parse().unwrap();
            let mut data = 0;
            while data < len + 2 {
                data += lines[index].len();
                index += 1;
            }
            (count, in_list) = (count + usize::from(is_meta), !is_meta);
        } else if line.starts_with(b"STAT ") || line.starts_with(b"ITEM ") || line.starts_with(b"key=") {
            in_list = true;
        } else {
            (count, in_list) = (count + 1, false);
        }
    }
    assert!(!in_list, "every list has an end");
    count
}

pub(super) fn one_by_one() {
    let Some(mut server) = MemcachedProcess::start() else { return };
    let mut choices = CorpusChoices::new(11);
    let mut counts = ComparisonCount::default();
    for request in corpus() {
        let shown = String::from_utf8_lossy(&request[..request.len().min(90)]).into_owned();
        let mut watch = Watch::memcached();
        let Ok(may_be_silent) = ask(&mut watch, &request) else {
            counts.refused += 1;
            continue;
        };
        let heads = watch.requests().len();
        // As in a proxy: a barrier behind what may be silent, the client's own version behind what may not.
        let injected = watch.wire.inject_barrier();
        // Behind a dump nothing may be asked before its end.
        let is_dump = is_dump(&request) && injected.is_none();
        if injected.is_none() && !is_dump {
            assert!(!may_be_silent || heads > 1, "a barrier behind what may be silent: {shown:?}");
            watch.feed(Side::Client, VERSION).unwrap();
        }
        let mut stream = server.connect();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let asks_version = usize::from(request.trim_ascii_start().starts_with(b"version"));
        let behind = if is_dump { b"" } else { VERSION };
        let said = [&b"set a 0 0 3\r\nxyz\r\nset n 0 0 1\r\n5\r\n"[..], &request, behind].concat();
        let stored = b"STORED\r\nSTORED\r\n";
        let writer = stream.try_clone().unwrap();
        let (heard, ending) = converse(&mut stream, writer, &said, &mut choices, |heard| {
            heard.len() > stored.len()
                && if is_dump {
                    heard.ends_with(b"\r\n")
                } else {
                    ends_with_versions(heard, 1 + asks_version)
                }
        });
        assert_eq!(
            ending,
            Ending::Done,
            "{shown:?} is followed by a version: {:?}",
            String::from_utf8_lossy(&heard)
        );
        let heard = heard.strip_prefix(stored).expect("both values are stored");
        let fed = feed_pieces(&mut watch, heard, &mut choices);
        let said = String::from_utf8_lossy(&heard[..heard.len().min(300)]).into_owned();
        assert_eq!(fed, Ok(()), "{shown:?} was answered by {said:?}");
        let complete: Vec<_> = watch.replies().into_iter().filter(|(_, extent)| extent.last).collect();
        if is_dump {
            assert!(
                complete.len() == 1 && watch.wire.in_flight() == 0 && !may_be_silent,
                "{shown:?}: {said:?}"
            );
            counts.answered += 1;
            continue;
        }
        assert_eq!(complete.len(), answers(heard) + 1, "{shown:?}: as many answers in {said:?}");
        assert!(watch.is_drained() && watch.wire.in_flight() == 0, "{shown:?}: nothing is left of {said:?}");
        let (last, _) = complete.last().expect("a version");
        assert_eq!(last.is_injected, injected.is_some());
        let answered = complete.len() - 1;
        assert!(answered <= heads, "{shown:?}: at most one answer per request in {said:?}");
        assert!(answered == heads || may_be_silent, "{shown:?} is said to be answered, and is not");
        if answered == heads { counts.answered += 1 } else { counts.silent += 1 }
    }
    counts.print("memcached text, one by one");
}

/// Requests in pipelines with barriers, in random order: everything comes out even, whatever was silent.
pub(super) fn pipelined() {
    let Some(mut server) = MemcachedProcess::start() else { return };
    let mut choices = CorpusChoices::new(12);
    let mut counts = ComparisonCount::default();
    let corpus: Vec<Vec<u8>> =
        corpus().into_iter().filter(|request| request.len() < 5000 && !is_dump(request)).collect();
    for _ in 0..150 {
        let mut watch = Watch::memcached();
        let mut said = Vec::new();
        let mut barriers = 0;
        for _ in 0..40 {
            let request = &corpus[choices.below(corpus.len())];
            // Only what the parser takes, and what is one request.
            let mut alone = Watch::memcached();
            if alone.feed(Side::Client, request).is_err()
                || alone.requests().len() != 1
                || alone.requests()[0].id != 0
            {
                counts.refused += 1;
                continue;
            }
            let Ok(()) = watch.feed(Side::Client, request) else {
                panic!("refused in a pipeline: {request:?}")
            };
            said.extend(request);
            if let Some(barrier) = watch.wire.inject_barrier() {
                said.extend(barrier.bytes);
                barriers += 1;
            }
        }
        watch.feed(Side::Client, b"mn\r\n").unwrap();
        said.extend(b"mn\r\n");
        let mut stream = server.connect();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let writer = stream.try_clone().unwrap();
        let said_lines = said.split(|&byte| byte == b'\n');
        let asked =
            said_lines.filter(|line| line.starts_with(b"mn ") || line.trim_ascii_end() == b"mn").count();
        let (heard, ending) = converse(&mut stream, writer, &said, &mut choices, |heard| {
            heard.ends_with(b"MN\r\n") && heard.windows(4).filter(|heard| heard == b"MN\r\n").count() >= asked
        });
        let shown = || {
            format!("{:?} answered by {:?}", String::from_utf8_lossy(&said), String::from_utf8_lossy(&heard))
        };
        assert_eq!(ending, Ending::Done, "{}", shown());
        let fed = feed_pieces(&mut watch, &heard, &mut choices);
        assert_eq!(fed, Ok(()), "{}", shown());
        assert!(watch.is_drained() && watch.wire.in_flight() == 0, "{}", shown());
        let replies: Vec<_> = watch.replies().into_iter().filter(|(_, extent)| extent.last).collect();
        assert_eq!(replies.iter().filter(|(reply, _)| reply.is_injected).count(), barriers, "{}", shown());
        assert!(
            replies.is_sorted_by(|(one, _), (other, _)| one.id < other.id),
            "in order, one each: {}",
            shown()
        );
        assert!(replies.iter().all(|(reply, _)| reply.is_solicited), "{}", shown());
        let requests = watch.requests();
        for request in requests.iter().filter(|request| request.reply == ReplyExpectation::Always) {
            assert!(
                replies.iter().any(|(reply, _)| reply.id == request.id),
                "{request:?} is answered: {}",
                shown()
            );
        }
        let answered = replies.len() - barriers;
        counts.answered += answered;
        counts.silent += requests.len() - answered;
    }
    counts.print("memcached text, in pipelines");
}
