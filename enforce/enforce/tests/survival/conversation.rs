//! The same odd requests directly and through the proxy.

use crate::proxy::{Running, Server};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// Time after which a server is taken to wait for more.
const PATIENCE: Duration = Duration::from_secs(3);

/// Choices by xorshift, the same in every run.
pub(crate) struct Choices(pub(crate) u64);

impl Choices {
    pub(crate) fn below(&mut self, of: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % of
    }

    pub(crate) fn of<'a>(&mut self, all: &[&'a [u8]]) -> &'a [u8] {
        all[self.below(all.len())]
    }
}

/// Requests around the odd one of a conversation.
pub(crate) struct Dialect {
    /// Request that clears the server, on a connection of its own, and its answer.
    pub(crate) clear: Option<(&'static [u8], &'static [u8])>,
    /// Requests before the odd one, and their answers.
    pub(crate) before: &'static [u8],
    pub(crate) answer: &'static [u8],
    /// Requests behind it, and the last bytes of their answers.
    pub(crate) behind: &'static [u8],
    pub(crate) end: &'static [u8],
    /// Beginning of the line by which a server says that it cannot read on, if it has one.
    pub(crate) last_words: Option<&'static [u8]>,
}

/// A conversation with a server: the dialect's first requests are answered, then the rest is sent.
struct Conversation {
    dialect: &'static Dialect,
    rest: Vec<u8>,
}

/// Reads until the answer ends with `end`, the server hangs up (`Err`), or it waits.
pub(crate) fn hear(stream: &mut TcpStream, heard: &mut Vec<u8>, end: &[u8]) -> Result<(), ()> {
    let mut piece = vec![0; 1 << 16];
    while !heard.ends_with(end) {
        match stream.read(&mut piece) {
            Ok(0) => return Err(()),
            Ok(count) => heard.extend_from_slice(&piece[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                let heard = String::from_utf8_lossy(heard);
                panic!("silent behind {:?}", &heard[heard.len().saturating_sub(300)..]);
            }
            Err(_) => return Err(()),
        }
    }
    Ok(())
}

impl Conversation {
    /// Behind the request stand the dialect's last ones, whose answer ends the conversation.
    fn around(dialect: &'static Dialect, request: &[u8]) -> Self {
        Self { dialect, rest: [request, dialect.behind].concat() }
    }

    /// Returns the answers of the server, and whether it survived. Memcached drops answers that it has not sent when it
    /// finds a key too long, so that it is asked step by step.
    fn directly(&self, server: &Server) -> (Vec<u8>, bool) {
        let mut stream = connect(TcpStream::connect(server.address).unwrap());
        let mut heard = Vec::new();
        stream.write_all(self.dialect.before).unwrap();
        hear(&mut stream, &mut heard, self.dialect.answer).unwrap();
        let _ = stream.write_all(&self.rest);
        let survived = hear(&mut stream, &mut heard, self.dialect.end).is_ok();
        (heard, survived)
    }

    /// Returns the same through a proxy, with everything sent at once, in two pieces.
    fn through(&self, proxy: &Running, cut: usize) -> (Vec<u8>, bool) {
        let mut stream = connect(proxy.connect());
        let all = [self.dialect.before, &self.rest[..]].concat();
        let cut = cut.min(all.len());
        let mut heard = Vec::new();
        let mut writer = stream.try_clone().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // A server that hangs up does not listen.
                let _ = writer.write_all(&all[..cut]).and_then(|()| writer.write_all(&all[cut..]));
            });
            let survived = hear(&mut stream, &mut heard, self.dialect.end).is_ok();
            (heard, survived)
        })
    }
}

pub(crate) fn connect(stream: TcpStream) -> TcpStream {
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Runs `act` while other clients, whose requests may go over the same connections to the server, check that the
/// answers that they get are theirs.
pub(crate) fn beside_bystanders(
    proxy: &Running,
    conversation: impl Fn(u32) -> (String, String) + Sync,
    act: impl FnOnce(),
) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for number in 0..3 {
            let is_over = &is_over;
            let conversation = &conversation;
            scope.spawn(move || {
                let mut stream = connect(proxy.connect());
                let (request, expected) = conversation(number);
                while !is_over.load(SeqCst) {
                    stream.write_all(request.as_bytes()).unwrap();
                    let mut heard = vec![0; expected.len()];
                    stream.read_exact(&mut heard).expect("a bystander is served");
                    assert_eq!(String::from_utf8_lossy(&heard), expected);
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
        }
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
        is_over.store(true, SeqCst);
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// Two servers with the same history give the same unique numbers.
pub(crate) fn compare(
    dialect: &'static Dialect,
    choices: &mut Choices,
    servers: [&Server; 2],
    proxy: &Running,
    request: &[u8],
) -> bool {
    let shown = || String::from_utf8_lossy(&request[..request.len().min(400)]).into_owned();
    let conversation = Conversation::around(dialect, request);
    for (server, (clear, answer)) in
        servers.into_iter().flat_map(|server| dialect.clear.map(|pair| (server, pair)))
    {
        let mut stream = connect(TcpStream::connect(server.address).unwrap());
        stream.write_all(clear).unwrap();
        hear(&mut stream, &mut Vec::new(), answer).unwrap();
    }
    let (direct, survived) = conversation.directly(servers[0]);
    let cut = choices.below(dialect.before.len() + conversation.rest.len() + 1);
    let (through, through_survived) = conversation.through(proxy, cut);
    let text = |heard: &[u8]| String::from_utf8_lossy(heard).into_owned();
    let last_words = |heard: &[u8]| {
        let words = dialect.last_words?;
        heard.windows(words.len()).position(|window| window == words).map(|place| place + words.len())
    };
    if survived {
        assert_eq!(text(&through), text(&direct), "{:?}", shown());
        assert!(through_survived);
    } else if let Some(end) = last_words(&direct) {
        // The words behind that are the proxy's own.
        let through = &through[..last_words(&through).unwrap_or(through.len())];
        assert_eq!(text(through), text(&direct[..end]), "{:?}", shown());
        assert!(!through_survived);
    } else {
        assert!(through.starts_with(dialect.answer), "earlier requests are answered: {:?}", shown());
    }
    survived
}
