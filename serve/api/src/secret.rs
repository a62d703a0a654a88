//! Secrets of tokens.

use std::fs::File;
use std::io::{self, Read as _};

/// Returns a new token: 256 random bits in hexadecimal.
///
/// # Errors
/// If the kernel gives no random numbers.
pub fn new_secret() -> io::Result<String> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns a random number.
///
/// # Errors
/// If the kernel gives no random numbers.
pub fn random_number() -> io::Result<u64> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Returns the hash of a token, as it is stored. A token has 256 random bits, so that a fast hash is enough.
pub fn hash_of_secret(secret: &str) -> String {
    blake3::hash(secret.as_bytes()).to_hex().to_string()
}
