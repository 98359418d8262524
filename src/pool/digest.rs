//! Digests by which a state is told from a later one. 128 bits of SHA-256: no two differing
//! states will ever meet.

use sha2::{Digest, Sha256};

/// Of these lines, in this order.
pub fn of_lines(lines: &[String]) -> u128 {
    let mut hasher = Sha256::new();
    for line in lines {
        hasher.update(line.len().to_be_bytes());
        hasher.update(line.as_bytes());
    }
    shortened(hasher)
}

/// Of these bytes.
pub fn of_bytes(bytes: &[u8]) -> u128 {
    let mut hasher = Sha256::new();
    hasher.update(bytes);
    shortened(hasher)
}

fn shortened(hasher: Sha256) -> u128 {
    let digest = hasher.finalize();
    let mut first = [0_u8; 16];
    first.copy_from_slice(&digest[..16]);
    u128::from_be_bytes(first)
}
