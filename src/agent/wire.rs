//! Frames between the daemon and the agent inside a member.
//!
//! A frame is a length (four bytes, big-endian) and that many bytes of postcard. The agent
//! speaks first: it sends `ToDaemon::Hello` on every accepted connection, the daemon answers
//! with `ToAgent::Hello`, and from then on either may send what the other announced it knows.
//!
//! postcard is positional, so a frame that was ever released never changes its fields. What is
//! new comes as a new variant **at the end** of an enum, announced by a capability and sent only
//! to a peer that announced it; a frame of a variant this build does not know is skipped whole
//! (its length says where the next begins). `PROTOCOL` rises only when that is not enough, and
//! then the handshake refuses.
//!
//! A length is checked against the direction's limit before anything is allocated. The types
//! here are the wire's own; what the agent says is checked and converted in `hostile.rs`.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::machine;

/// The one protocol this build speaks.
pub const PROTOCOL: u32 = 1;

/// What this build's agent can do, by name: what later versions add is announced here.
pub const CAPABILITIES: &[&str] =
    &["configure.identity", "configure.environment", "keys", "ssh.exec", "ssh.pty"];

/// What the daemon says.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToAgent {
    /// Closes the handshake.
    Hello(DaemonHello),
    /// Land this setup and these keys, then answer with `ToDaemon::Applied`.
    Apply(Apply),
    /// Answered by `ToDaemon::Pong` with the same number.
    Ping(u64),
}

/// What the agent says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToDaemon {
    /// The first frame of a connection.
    Hello(AgentHello),
    /// The outcome of an `Apply`.
    Applied(Applied),
    /// How many SSH connections are logged in now. Sent after the handshake and on every change.
    Sessions(u32),
    /// The answer to `ToAgent::Ping`.
    Pong(u64),
}

/// The daemon's half of the handshake.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonHello {
    pub protocol: u32,
    pub version: String,
    pub capabilities: Vec<String>,
}

/// The agent's half of the handshake.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentHello {
    pub protocol: u32,
    pub version: String,
    pub capabilities: Vec<String>,
    /// What init was told at boot; empty if nothing. The provider's own word is the one to trust.
    pub boot_id: String,
    /// The image generation, as init was told; empty if nothing.
    pub image: String,
    /// Empty until a first setup has landed.
    pub login_user: String,
    /// Public host key lines (type and base64).
    pub host_keys: Vec<String>,
}

/// One wish: the whole setup and the whole managed key block.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Apply {
    pub revision: u64,
    pub keys: Vec<String>,
    pub setup: Setup,
}

/// `machine::Setup` without what postcard cannot carry (skipped and defaulted fields).
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    pub user: Option<String>,
    pub shell: Option<String>,
    pub groups: Vec<String>,
    pub sudo: Option<bool>,
    pub environment: Vec<(String, String)>,
}

impl From<&machine::Setup> for Setup {
    fn from(setup: &machine::Setup) -> Self {
        Self {
            user: setup.identity.user.clone(),
            shell: setup.identity.shell.clone(),
            groups: setup.identity.groups.clone(),
            sudo: setup.identity.sudo,
            environment: setup
                .environment
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        }
    }
}

/// What became of an `Apply`. Keys and setup succeed and fail apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    pub revision: u64,
    pub keys: Outcome,
    pub setup: Outcome,
    /// Conditions that are no failure, such as `sudo: the image has no sudo`.
    pub remarks: Vec<String>,
}

/// How one part ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    Done,
    /// `reason` is one CamelCase word; `message` names the step.
    Failed {
        reason: String,
        message: String,
    },
}

/// One direction's enum of frames.
pub trait Frame: Serialize + DeserializeOwned {
    /// How many variants this build knows.
    const VARIANTS: u32;
    /// The longest frame that is read or written, in bytes.
    const BYTES_MAX: usize;
}

impl Frame for ToAgent {
    const VARIANTS: u32 = 3;
    const BYTES_MAX: usize = 1 << 20;
}

impl Frame for ToDaemon {
    const VARIANTS: u32 = 4;
    const BYTES_MAX: usize = 64 << 10;
}

/// Why a stream of frames ended badly.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    #[error("a frame of {length} bytes is over the limit of {limit}")]
    TooLong { length: usize, limit: usize },
    #[error("a frame cannot be read: {0}")]
    Malformed(postcard::Error),
    #[error("a frame has {0} bytes too many")]
    Trailing(usize),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Reads the next frame this build knows. None: the peer closed between two frames.
///
/// Not safe to cancel: dropping the future in the middle of a frame loses its beginning.
pub async fn read_frame<F: Frame>(stream: &mut (impl AsyncRead + Unpin)) -> Result<Option<F>, WireError> {
    loop {
        let Some(length) = read_length(stream).await? else {
            return Ok(None);
        };
        if length > F::BYTES_MAX {
            return Err(WireError::TooLong { length, limit: F::BYTES_MAX });
        }
        let mut bytes = vec![0; length];
        stream.read_exact(&mut bytes).await?;
        if let Some(frame) = decode(&bytes)? {
            return Ok(Some(frame));
        }
    }
}

/// Writes one frame.
pub async fn write_frame<F: Frame>(
    stream: &mut (impl AsyncWrite + Unpin),
    frame: &F,
) -> Result<(), WireError> {
    stream.write_all(&encode(frame)?).await?;
    Ok(stream.flush().await?)
}

/// A frame with its length in front.
fn encode<F: Frame>(frame: &F) -> Result<Vec<u8>, WireError> {
    let mut bytes = postcard::to_extend(frame, vec![0; 4]).map_err(WireError::Malformed)?;
    let length = bytes.len() - 4;
    let prefix = u32::try_from(length).ok().filter(|_| length <= F::BYTES_MAX);
    let prefix = prefix.ok_or(WireError::TooLong { length, limit: F::BYTES_MAX })?;
    bytes[..4].copy_from_slice(&prefix.to_be_bytes());
    Ok(bytes)
}

/// None: a variant of a later version.
fn decode<F: Frame>(bytes: &[u8]) -> Result<Option<F>, WireError> {
    let (variant, _) = postcard::take_from_bytes::<u32>(bytes).map_err(WireError::Malformed)?;
    if variant >= F::VARIANTS {
        return Ok(None);
    }
    let (frame, rest) = postcard::take_from_bytes(bytes).map_err(WireError::Malformed)?;
    if rest.is_empty() { Ok(Some(frame)) } else { Err(WireError::Trailing(rest.len())) }
}

/// None at the end of the stream, if it ends before a length begins.
async fn read_length(stream: &mut (impl AsyncRead + Unpin)) -> Result<Option<usize>, WireError> {
    let mut prefix = [0; 4];
    if stream.read(&mut prefix[..1]).await? == 0 {
        return Ok(None);
    }
    stream.read_exact(&mut prefix[1..]).await?;
    Ok(Some(usize::try_from(u32::from_be_bytes(prefix)).unwrap_or(usize::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_arrive_as_they_were_sent() {
        let (mut here, mut there) = tokio::io::duplex(1 << 16);
        let hello = ToDaemon::Hello(AgentHello { login_user: "dev".into(), ..AgentHello::default() });
        write_frame(&mut here, &hello).await.expect("written");
        write_frame(&mut here, &ToDaemon::Sessions(3)).await.expect("written");
        drop(here);
        assert_eq!(read_frame(&mut there).await.expect("read"), Some(hello));
        assert_eq!(read_frame(&mut there).await.expect("read"), Some(ToDaemon::Sessions(3)));
        assert_eq!(read_frame::<ToDaemon>(&mut there).await.expect("read"), None);
    }

    #[tokio::test]
    async fn a_length_over_the_limit_is_refused_before_anything_is_allocated() {
        let mut stream = &u32::MAX.to_be_bytes()[..];
        let error = read_frame::<ToDaemon>(&mut stream).await.expect_err("refused");
        assert_eq!(error.to_string(), "a frame of 4294967295 bytes is over the limit of 65536");
    }

    #[tokio::test]
    async fn a_frame_of_a_later_version_is_skipped() {
        let mut bytes = vec![0, 0, 0, 3, 99, 1, 2];
        bytes.extend(encode(&ToDaemon::Pong(7)).expect("encoded"));
        assert_eq!(read_frame(&mut &bytes[..]).await.expect("read"), Some(ToDaemon::Pong(7)));
    }

    #[tokio::test]
    async fn bytes_after_a_frame_and_a_stream_cut_in_a_frame_are_errors() {
        let long = [0, 0, 0, 3, 2, 1, 0];
        assert!(matches!(read_frame::<ToDaemon>(&mut &long[..]).await, Err(WireError::Trailing(1))));
        let cut = [0, 0, 0, 9, 2];
        assert!(matches!(read_frame::<ToDaemon>(&mut &cut[..]).await, Err(WireError::Io(_))));
    }

    #[test]
    fn the_numbers_of_variants_are_those_of_the_enums() {
        let last = postcard::to_allocvec(&ToDaemon::Pong(0)).expect("encoded");
        assert_eq!(u32::from(last[0]), ToDaemon::VARIANTS - 1);
        let last = postcard::to_allocvec(&ToAgent::Ping(0)).expect("encoded");
        assert_eq!(u32::from(last[0]), ToAgent::VARIANTS - 1);
    }

    // The bytes of released frames: a change here breaks agents that run already.
    #[test]
    fn released_frames_keep_their_bytes() {
        let applied = ToDaemon::Applied(Applied {
            revision: 300,
            keys: Outcome::Done,
            setup: Outcome::Failed { reason: "R".into(), message: "m".into() },
            remarks: vec!["x".into()],
        });
        let bytes = postcard::to_allocvec(&applied).expect("encoded");
        assert_eq!(bytes, [1, 0xac, 2, 0, 1, 1, b'R', 1, b'm', 1, 1, b'x']);
        let setup =
            Setup { sudo: Some(false), environment: vec![("A".into(), "b".into())], ..Setup::default() };
        let apply = ToAgent::Apply(Apply { revision: 1, keys: vec!["k".into()], setup });
        let bytes = postcard::to_allocvec(&apply).expect("encoded");
        assert_eq!(bytes, [1, 1, 1, 1, b'k', 0, 0, 0, 1, 0, 1, 1, b'A', 1, b'b']);
    }
}
