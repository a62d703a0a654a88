//! For how long a socket polls its network device for packets before whoever receives sleeps (SO_BUSY_POLL).
//!
//! The option has no safe wrapper in any library used here; it is read and set here and nowhere else.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// What the kernel reads and writes for the option: an `int`.
const OPTION_BYTES: libc::socklen_t = 4;
const _: () = assert!(size_of::<libc::c_int>() == OPTION_BYTES as usize);

/// The time in microseconds; zero: it does not poll.
///
/// # Errors
/// Where it is no socket, or the kernel does not know the option.
#[allow(unsafe_code, reason = "there is no safe wrapper of this option")]
pub fn busy_poll_us(socket: impl AsFd) -> io::Result<u32> {
    let (mut value, mut length): (libc::c_int, _) = (0, OPTION_BYTES);
    let socket = socket.as_fd().as_raw_fd();
    let place = std::ptr::from_mut(&mut value).cast();
    // SAFETY: the kernel writes at most `length` bytes to `place`, which has that size; both outlive the call.
    let answer =
        unsafe { libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL, place, &raw mut length) };
    if answer == 0 { Ok(value.unsigned_abs()) } else { Err(io::Error::last_os_error()) }
}

/// Has a socket poll for so many microseconds.
///
/// # Errors
/// As [`busy_poll_us`]; and for a longer time than before without CAP_NET_ADMIN.
#[allow(unsafe_code, reason = "there is no safe wrapper of this option")]
pub fn set_busy_poll_us(socket: impl AsFd, microseconds: u32) -> io::Result<()> {
    let value = libc::c_int::try_from(microseconds).map_err(|_| io::ErrorKind::InvalidInput)?;
    let socket = socket.as_fd().as_raw_fd();
    let place = std::ptr::from_ref(&value).cast();
    // SAFETY: the kernel reads OPTION_BYTES of `place`, which has that size and outlives the call.
    let answer =
        unsafe { libc::setsockopt(socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL, place, OPTION_BYTES) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::net::UdpSocket;

    #[test]
    fn a_socket_polls_as_long_as_it_is_told_to() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let before = busy_poll_us(&socket).unwrap();
        match set_busy_poll_us(&socket, before + 70) {
            Ok(()) => assert_eq!(busy_poll_us(&socket).unwrap(), before + 70),
            Err(error) => testkit::skip(&format!("SO_BUSY_POLL: {error}")),
        }
        set_busy_poll_us(&socket, before).unwrap();
        assert_eq!(busy_poll_us(&socket).unwrap(), before);
        assert!(set_busy_poll_us(&socket, u32::MAX).is_err());
        assert!(busy_poll_us(File::open("/dev/null").unwrap()).is_err(), "it is no socket");
    }
}
