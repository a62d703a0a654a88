//! Work of a command by its name: its kind, and the keys that it names.

use crate::RequestClass;
use units::Bytes;

/// Bytes of arguments that the charge for a key, or for a command without keys, covers. It is what a control request is
/// charged as.
const ARGUMENTS_PER_KEY: u64 = 4096;

/// Effect of a command on the server's store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Read,
    Write,
    /// Neither, or a command that is not known.
    Other,
}

/// Number of keys and members that a command looks up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyRule {
    Fixed(u32),
    /// One for each `step` words from word `from` on; the name is word 0.
    Each {
        from: u64,
        step: u64,
    },
    /// The number that this word says.
    Said(u64),
}

/// Returns the row of a command with this name in lower case. `tests/resp.rs` compares the rows with what a server says of
/// its commands (COMMAND).
fn row(name: &[u8]) -> (Effect, KeyRule) {
    use Effect::{Other, Read, Write};
    use KeyRule::{Fixed, Said};
    let each = |from, step| KeyRule::Each { from, step };
    match name {
        b"get"
        | b"getrange"
        | b"substr"
        | b"strlen"
        | b"getbit"
        | b"bitcount"
        | b"bitpos"
        | b"bitfield_ro"
        | b"dump"
        | b"ttl"
        | b"pttl"
        | b"expiretime"
        | b"pexpiretime"
        | b"type"
        | b"dbsize"
        | b"keys"
        | b"scan"
        | b"randomkey"
        | b"lolwut"
        | b"hget"
        | b"hgetall"
        | b"hkeys"
        | b"hvals"
        | b"hlen"
        | b"hexists"
        | b"hstrlen"
        | b"hscan"
        | b"hrandfield"
        | b"lindex"
        | b"llen"
        | b"lpos"
        | b"lrange"
        | b"scard"
        | b"sismember"
        | b"smembers"
        | b"srandmember"
        | b"sscan"
        | b"zcard"
        | b"zcount"
        | b"zlexcount"
        | b"zrange"
        | b"zrangebylex"
        | b"zrangebyscore"
        | b"zrank"
        | b"zrevrange"
        | b"zrevrangebylex"
        | b"zrevrangebyscore"
        | b"zrevrank"
        | b"zscan"
        | b"zscore"
        | b"zrandmember"
        | b"geodist"
        | b"georadius_ro"
        | b"georadiusbymember_ro"
        | b"geosearch"
        | b"xlen"
        | b"xpending"
        | b"xrange"
        | b"xrevrange"
        | b"xread"
        | b"sort_ro" => (Read, Fixed(1)),
        b"lcs" => (Read, Fixed(2)),
        b"mget" | b"exists" | b"touch" | b"pfcount" | b"sdiff" | b"sinter" | b"sunion" => (Read, each(1, 1)),
        b"hmget" | b"smismember" | b"zmscore" | b"geohash" | b"geopos" => (Read, each(2, 1)),
        b"httl" | b"hpttl" | b"hexpiretime" | b"hpexpiretime" => (Read, each(4, 1)),
        b"sintercard" | b"zdiff" | b"zinter" | b"zintercard" | b"zunion" => (Read, Said(1)),
        b"eval_ro" | b"evalsha_ro" | b"fcall_ro" => (Read, Said(2)),
        b"set" | b"setex" | b"psetex" | b"setnx" | b"getset" | b"setrange" | b"append" | b"setbit"
        | b"bitfield" | b"getdel" | b"getex" | b"incr" | b"incrby" | b"incrbyfloat" | b"decr" | b"decrby"
        | b"expire" | b"expireat" | b"pexpire" | b"pexpireat" | b"persist" | b"move" | b"restore"
        | b"restore-asking" | b"migrate" | b"flushall" | b"flushdb" | b"swapdb" | b"hincrby"
        | b"hincrbyfloat" | b"hsetnx" | b"linsert" | b"lpop" | b"rpop" | b"lrem" | b"lset" | b"ltrim"
        | b"spop" | b"zincrby" | b"zpopmax" | b"zpopmin" | b"zremrangebylex" | b"zremrangebyrank"
        | b"zremrangebyscore" | b"georadius" | b"georadiusbymember" | b"xadd" | b"xautoclaim" | b"xsetid"
        | b"xtrim" | b"xreadgroup" | b"sort" | b"pfdebug" | b"publish" | b"spublish" => (Write, Fixed(1)),
        b"copy" | b"rename" | b"renamenx" | b"lmove" | b"rpoplpush" | b"smove" | b"zrangestore"
        | b"geosearchstore" => (Write, Fixed(2)),
        b"del" | b"unlink" | b"pfmerge" | b"sdiffstore" | b"sinterstore" | b"sunionstore" => {
            (Write, each(1, 1))
        }
        b"bitop" => (Write, each(2, 1)),
        b"hdel" | b"sadd" | b"srem" | b"zrem" | b"lpush" | b"lpushx" | b"rpush" | b"rpushx" | b"pfadd"
        | b"xdel" => (Write, each(2, 1)),
        b"xack" => (Write, each(3, 1)),
        b"hgetdel" | b"hgetex" | b"hpersist" => (Write, each(4, 1)),
        b"hsetex" => (Write, each(4, 2)),
        b"xclaim" | b"hexpire" | b"hexpireat" | b"hpexpire" | b"hpexpireat" => (Write, each(5, 1)),
        b"mset" | b"msetnx" => (Write, each(1, 2)),
        b"hset" | b"hmset" | b"zadd" => (Write, each(2, 2)),
        b"geoadd" => (Write, each(2, 3)),
        b"lmpop" | b"zmpop" | b"msetex" => (Write, Said(1)),
        b"zdiffstore" | b"zinterstore" | b"zunionstore" => (Write, Said(2)),
        // They may write, and say how many keys they use.
        b"eval" | b"evalsha" | b"fcall" => (Write, Said(2)),
        b"watch" => (Other, each(1, 1)),
        _ => (Other, Fixed(1)),
    }
}

/// Work of a command, as far as its words have been read.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommandWork {
    effect: Effect,
    rule: KeyRule,
    /// Number of words with the name.
    words: u64,
    /// Number of words read.
    read: u64,
    /// Bytes of the first argument, which is the key of most commands.
    first: u64,
    /// Bytes of the other arguments.
    others: u64,
    /// The number of keys that the command says.
    said: u32,
}

impl CommandWork {
    /// Work of a command of which only the name (in lower case) was read.
    pub(super) fn new(name: &[u8], words: u64) -> Self {
        let (effect, rule) = row(name);
        Self { effect, rule, words, read: 1, first: 0, others: 0, said: 1 }
    }

    /// Sets the number of keys of XREAD and XREADGROUP, which their options determine.
    pub(super) fn set_streams(&mut self, streams: u64) {
        self.rule = KeyRule::Fixed(u32::try_from(streams).unwrap_or(u32::MAX));
    }

    /// Returns true if the next word says the number of keys.
    pub(super) fn awaits_number(&self) -> bool {
        self.rule == KeyRule::Said(self.read)
    }

    /// Adds the next word: its length, and its content if that is a number of keys.
    pub(super) fn add_word(&mut self, bytes: u64, content: Option<&[u8]>) {
        if self.awaits_number() {
            let digits = content.and_then(|content| std::str::from_utf8(content).ok());
            let said = digits.and_then(|digits| digits.parse().ok()).unwrap_or(1);
            // A server refuses more keys than there are words.
            self.said = said.min(u32::try_from(self.words).unwrap_or(u32::MAX));
        }
        let sum = if self.read == 1 { &mut self.first } else { &mut self.others };
        *sum = sum.saturating_add(bytes);
        self.read += 1;
    }

    /// Number of keys, at least 1.
    pub(super) fn keys(&self) -> u32 {
        let keys = match self.rule {
            KeyRule::Fixed(keys) => keys,
            KeyRule::Each { from, step } => {
                let count = self.words.saturating_sub(from).div_ceil(step);
                u32::try_from(count).unwrap_or(u32::MAX)
            }
            KeyRule::Said(_) => self.said,
        };
        keys.max(1)
    }

    /// Class by the words read. The bytes of a write are those of its arguments behind the first one, which is its key. A
    /// command of large arguments is a write of them, whatever its name: the server has to take them.
    pub(super) fn class(&self) -> RequestClass {
        let arguments = self.first.saturating_add(self.others);
        let is_large = arguments > ARGUMENTS_PER_KEY * u64::from(self.keys());
        match self.effect {
            Effect::Write => RequestClass::Write(Bytes(self.others)),
            Effect::Read | Effect::Other if is_large => RequestClass::Write(Bytes(arguments)),
            Effect::Read => RequestClass::Read(Bytes(0)),
            Effect::Other => RequestClass::Control,
        }
    }
}
