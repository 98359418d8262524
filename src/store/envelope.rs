//! What stands around every value on disk.
//!
//! ```text
//! byte 0       version of the record's type
//! bytes 1..5   crc32 of the key, byte 0, and everything behind the crc
//! bytes 5..13  resourceVersion
//! bytes 13..   payload
//! ```
//!
//! The key is in the checksum so that a value under a wrong key does not pass.

/// What the envelope adds.
const HEADER_BYTES: usize = 13;

/// An opened envelope.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Opened<'a> {
    /// Which frozen type the payload is of.
    pub type_version: u8,
    pub resource_version: u64,
    pub payload: &'a [u8],
}

/// Why a value is not what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Damage {
    #[error("it is cut off")]
    Truncated,
    #[error("its checksum is wrong")]
    Checksum,
}

/// Wraps a payload for `key`.
pub(super) fn seal(key: &[u8], type_version: u8, resource_version: u64, payload: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(HEADER_BYTES + payload.len());
    value.push(type_version);
    value.extend_from_slice(&[0; 4]);
    value.extend_from_slice(&resource_version.to_be_bytes());
    value.extend_from_slice(payload);
    let crc = checksum(key, type_version, &value[5..]);
    value[1..5].copy_from_slice(&crc.to_be_bytes());
    value
}

/// Unwraps the value found at `key`.
pub(super) fn open<'a>(key: &[u8], value: &'a [u8]) -> Result<Opened<'a>, Damage> {
    let (&type_version, rest) = value.split_first().ok_or(Damage::Truncated)?;
    let (crc, body) = rest.split_first_chunk::<4>().ok_or(Damage::Truncated)?;
    let (resource_version, payload) = body.split_first_chunk::<8>().ok_or(Damage::Truncated)?;
    if u32::from_be_bytes(*crc) != checksum(key, type_version, body) {
        return Err(Damage::Checksum);
    }
    Ok(Opened { type_version, resource_version: u64::from_be_bytes(*resource_version), payload })
}

fn checksum(key: &[u8], type_version: u8, body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(key);
    hasher.update(&[type_version]);
    hasher.update(body);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_under_its_own_key_alone() {
        let value = seal(b"key", 3, 77, b"payload");
        let opened = Opened { type_version: 3, resource_version: 77, payload: b"payload" };
        assert_eq!(open(b"key", &value), Ok(opened));
        assert_eq!(open(b"kex", &value), Err(Damage::Checksum));
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let value = seal(b"key", 1, 9, b"some payload");
        for bit in 0..value.len() * 8 {
            let mut flipped = value.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open(b"key", &flipped), Err(Damage::Checksum), "bit {bit}");
        }
        for length in 0..value.len() {
            assert!(open(b"key", &value[..length]).is_err(), "cut to {length} bytes");
        }
    }
}
