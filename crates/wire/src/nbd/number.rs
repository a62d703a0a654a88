//! Numbers of the NBD protocol document.

pub(super) const GREETING: u64 = 0x4e42_444d_4147_4943;
pub(super) const NEWSTYLE: u64 = 0x4948_4156_454f_5054;
pub(super) const OLDSTYLE: u64 = 0x0000_4202_8186_1253;
pub(super) const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
pub(super) const REQUEST: u32 = 0x2560_9513;
pub(super) const REQUEST_EXTENDED: u32 = 0x21e4_1c71;
pub(super) const REPLY_SIMPLE: u32 = 0x6744_6698;
pub(super) const REPLY_STRUCTURED: u32 = 0x668e_33ef;
pub(super) const REPLY_EXTENDED: u32 = 0x6e8a_278c;

/// Of the server and of the client: fixed newstyle.
pub(super) const FIXED_NEWSTYLE: u16 = 1;
/// Of the server and of the client: no 124 zeroes behind the answer to EXPORT_NAME.
pub(super) const NO_ZEROES: u16 = 2;

pub(super) const OPT_EXPORT_NAME: u32 = 1;
pub(super) const OPT_STARTTLS: u32 = 5;
pub(super) const OPT_INFO: u32 = 6;
pub(super) const OPT_GO: u32 = 7;
pub(super) const OPT_STRUCTURED_REPLY: u32 = 8;
pub(super) const OPT_EXTENDED_HEADERS: u32 = 11;

pub(super) const REP_ACK: u32 = 1;
pub(super) const REP_INFO: u32 = 3;
pub(super) const REP_ERROR: u32 = 1 << 31;
pub(super) const INFO_EXPORT: u16 = 0;
pub(super) const INFO_BLOCK_SIZE: u16 = 3;

pub(super) const CMD_READ: u16 = 0;
pub(super) const CMD_WRITE: u16 = 1;
pub(super) const CMD_DISC: u16 = 2;
pub(super) const CMD_FLUSH: u16 = 3;
pub(super) const CMD_CACHE: u16 = 5;
pub(super) const CMD_WRITE_ZEROES: u16 = 6;
/// Of a request with extended headers: its length is that of a payload.
pub(super) const FLAG_PAYLOAD: u16 = 1 << 5;

/// Of a chunk: the last one of its reply.
pub(super) const FLAG_DONE: u16 = 1;
pub(super) const CHUNK_DATA: u16 = 1;
pub(super) const CHUNK_ERROR: u16 = 1 << 15;
