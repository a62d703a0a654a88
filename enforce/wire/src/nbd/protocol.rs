//! The numbers of the NBD protocol document (`doc/proto.md` of the reference implementation), under its names without
//! the prefix `NBD_`. All numbers are big-endian on the wire. Only what this workspace reads or writes is here.

/// The first eight bytes that a server sends: "NBDMAGIC".
pub const GREETING_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// Follows the greeting of a newstyle server, and begins each option of a client: "IHAVEOPT".
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// Follows the greeting of a server that speaks the obsolete oldstyle handshake.
pub(crate) const OLDSTYLE_MAGIC: u64 = 0x0000_4202_8186_1253;
/// Begins each reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Begins each request with a compact header.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Begins each request with an extended header.
pub(crate) const EXTENDED_REQUEST_MAGIC: u32 = 0x21e4_1c71;
/// Begins each simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Begins each chunk of a structured reply.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;
/// Begins each chunk of a reply with an extended header.
pub(crate) const EXTENDED_REPLY_MAGIC: u32 = 0x6e8a_278c;

/// Length of an option without its data: magic, option, length of the data.
pub const OPTION_HEADER_LEN: usize = 16;
/// Length of a reply to an option without its data: magic, option, reply type, length of the data.
pub(crate) const OPTION_REPLY_HEADER_LEN: usize = 20;
/// Length of a request without its data: magic, flags, type, cookie, offset, length.
pub const REQUEST_HEADER_LEN: usize = 28;
/// Length of a simple reply without its data: magic, error, cookie.
pub(crate) const SIMPLE_REPLY_HEADER_LEN: usize = 16;
/// Zeroes that follow the answer to [`OPT_EXPORT_NAME`] unless both sides set [`FLAG_NO_ZEROES`].
pub const EXPORT_NAME_ZEROES: usize = 124;
/// The longest string in a message, such as the name of an export, in bytes.
pub const STRING_LEN_MAX: u32 = 4096;

/// Handshake flag of both sides: options are answered, and unknown ones refused.
pub const FLAG_FIXED_NEWSTYLE: u16 = 1;
/// Handshake flag of both sides: no zeroes follow the answer to [`OPT_EXPORT_NAME`].
pub const FLAG_NO_ZEROES: u16 = 1 << 1;

/// Option that chooses an export and ends the handshake; a server that refuses hangs up.
pub const OPT_EXPORT_NAME: u32 = 1;
/// Option that ends the connection.
pub const OPT_ABORT: u32 = 2;
/// Option that asks for the names of all exports.
pub const OPT_LIST: u32 = 3;
/// Option that asks to continue under TLS.
pub(crate) const OPT_STARTTLS: u32 = 5;
/// Option that asks what an export is like.
pub const OPT_INFO: u32 = 6;
/// Option that chooses an export, which the server may refuse with a reason.
pub const OPT_GO: u32 = 7;
/// Option that asks for structured replies.
pub(crate) const OPT_STRUCTURED_REPLY: u32 = 8;
/// Option that asks for extended headers.
pub(crate) const OPT_EXTENDED_HEADERS: u32 = 11;

/// Option reply: done, and no further reply follows.
pub const REP_ACK: u32 = 1;
/// Option reply: the name of one export.
pub const REP_SERVER: u32 = 2;
/// Option reply: a piece of information about an export.
pub const REP_INFO: u32 = 3;
/// The bit that all option replies with an error have.
pub(crate) const REP_FLAG_ERROR: u32 = 1 << 31;
/// Option reply: the server does not know the option.
pub const REP_ERR_UNSUP: u32 = REP_FLAG_ERROR + 1;
/// Option reply: the data of the option make no sense.
pub const REP_ERR_INVALID: u32 = REP_FLAG_ERROR + 3;
/// Option reply: the server wants TLS first.
pub(crate) const REP_ERR_TLS_REQD: u32 = REP_FLAG_ERROR + 5;
/// Option reply: there is no such export.
pub const REP_ERR_UNKNOWN: u32 = REP_FLAG_ERROR + 6;

/// Piece of information: size and transmission flags of the export.
pub const INFO_EXPORT: u16 = 0;
/// Piece of information: the smallest, the preferred and the largest length of a request.
pub const INFO_BLOCK_SIZE: u16 = 3;

/// Transmission flag that is always set: the flags are valid.
pub const FLAG_HAS_FLAGS: u16 = 1;
/// Transmission flag: the server refuses to write.
pub const FLAG_READ_ONLY: u16 = 1 << 1;
/// Transmission flag: the server knows [`CMD_FLUSH`].
pub const FLAG_SEND_FLUSH: u16 = 1 << 2;
/// Transmission flag: the server honours the request flag FUA.
pub const FLAG_SEND_FUA: u16 = 1 << 3;
/// Transmission flag: the server knows [`CMD_TRIM`].
pub const FLAG_SEND_TRIM: u16 = 1 << 5;
/// Transmission flag: the server knows [`CMD_WRITE_ZEROES`].
pub const FLAG_SEND_WRITE_ZEROES: u16 = 1 << 6;
/// Transmission flag: a flush on one connection covers writes answered on all, so several can be used at once.
pub const FLAG_CAN_MULTI_CONN: u16 = 1 << 8;

/// Request type: read data.
pub const CMD_READ: u16 = 0;
/// Request type: write the data that follow.
pub const CMD_WRITE: u16 = 1;
/// Request type: answer what is outstanding and hang up. It has no reply.
pub const CMD_DISC: u16 = 2;
/// Request type: make durable what was written and answered before.
pub const CMD_FLUSH: u16 = 3;
/// Request type: the server may forget the data.
pub const CMD_TRIM: u16 = 4;
/// Request type: the server should read the data into its cache.
pub const CMD_CACHE: u16 = 5;
/// Request type: write zeroes, which are not sent.
pub const CMD_WRITE_ZEROES: u16 = 6;

/// Request flag with extended headers: the length in the header is that of a payload which follows.
pub(crate) const CMD_FLAG_PAYLOAD_LEN: u16 = 1 << 5;

/// Chunk flag: this chunk is the last one of its reply.
pub(crate) const REPLY_FLAG_DONE: u16 = 1;
/// Chunk type: an offset, and the data read there.
pub(crate) const REPLY_TYPE_OFFSET_DATA: u16 = 1;
/// The bit that all chunk types with an error have.
pub(crate) const REPLY_TYPE_ERROR_BIT: u16 = 1 << 15;

/// Error in a reply: the request makes no sense.
pub const EINVAL: u32 = 22;
/// Error in a reply: the write ends behind the end of the export.
pub const ENOSPC: u32 = 28;
