//! A watch: changes as they happen, one JSON document a line.

use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use serde::Deserialize;
use serde_json::Value;

use super::transport::broken;
use super::{ClientError, Status};

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Change {
    Added,
    Modified,
    Deleted,
    /// Nothing: the object carries only the version the watch has reached.
    Bookmark,
    /// The watch is over; the object is a `Status`.
    Error,
}

/// One change.
#[derive(Clone, Debug, Deserialize)]
pub struct WatchEvent {
    #[serde(rename = "type")]
    pub change: Change,
    pub object: Value,
}

/// An open watch.
#[derive(Debug)]
pub struct Watch {
    body: Incoming,
    lines: Lines,
}

impl Watch {
    pub(super) fn new(body: Incoming) -> Self {
        Self { body, lines: Lines::default() }
    }

    /// The next change; nothing once the server has ended the watch (go on from the last version).
    ///
    /// # Errors
    /// `TooOld` when the server lost the changes in between: list again.
    pub async fn next(&mut self) -> Result<Option<WatchEvent>, ClientError> {
        loop {
            if let Some(line) = self.lines.next() {
                return read(&line).map(Some);
            }
            match self.body.frame().await {
                Some(frame) => {
                    if let Ok(bytes) = frame.map_err(broken)?.into_data() {
                        self.lines.feed(&bytes);
                    }
                }
                None => return Ok(None),
            }
        }
    }
}

fn read(line: &[u8]) -> Result<WatchEvent, ClientError> {
    let event: WatchEvent =
        serde_json::from_slice(line).map_err(|error| ClientError::NotUnderstood(error.to_string()))?;
    if event.change != Change::Error {
        return Ok(event);
    }
    let status: Status = serde_json::from_value(event.object).unwrap_or_default();
    if status.code == 410 {
        return Err(ClientError::TooOld);
    }
    Err(ClientError::Refused { target: None, status: Box::new(status) })
}

/// Cuts a stream of bytes into lines, however it was cut into frames.
#[derive(Debug, Default)]
struct Lines {
    buffer: Vec<u8>,
    /// How far the buffer has been given out.
    taken: usize,
}

impl Lines {
    fn feed(&mut self, bytes: &Bytes) {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        self.buffer.extend_from_slice(bytes);
    }

    fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let rest = &self.buffer[self.taken..];
            let end = rest.iter().position(|&byte| byte == b'\n')?;
            let line = rest[..end].to_vec();
            self.taken += end + 1;
            if !line.iter().all(u8::is_ascii_whitespace) {
                return Some(line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_whole_however_it_arrives() {
        let mut lines = Lines::default();
        lines.feed(&Bytes::from_static(b"one\n\ntw"));
        assert_eq!(lines.next().as_deref(), Some(&b"one"[..]));
        assert_eq!(lines.next(), None);
        lines.feed(&Bytes::from_static(b"o\nthree\n"));
        assert_eq!(lines.next().as_deref(), Some(&b"two"[..]));
        assert_eq!(lines.next().as_deref(), Some(&b"three"[..]));
        assert_eq!(lines.next(), None);
    }

    #[test]
    fn an_expired_watch_says_list_again() {
        let line = br#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}"#;
        assert!(matches!(read(line), Err(ClientError::TooOld)));
    }
}
