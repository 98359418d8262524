//! Where a daemon listens, and how it is found.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;

use tokio::net::UnixStream;

use super::ClientError;

/// One daemon's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    /// `unix:///path`.
    Unix(PathBuf),
}

impl FromStr for Server {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix://") {
            return if path.starts_with('/') {
                Ok(Self::Unix(path.into()))
            } else {
                Err(format!("{text:?} has no absolute path: write unix:///run/ringleader/rl.sock"))
            };
        }
        if text.starts_with('/') {
            return Ok(Self::Unix(text.into()));
        }
        if text.starts_with("https://") {
            return Err("this version speaks to a daemon over its unix socket only: \
                        write unix:///path, or run `rl` on the daemon's machine"
                .into());
        }
        Err(format!("{text:?} is not a server: write unix:///run/ringleader/rl.sock"))
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
        }
    }
}

/// Which daemon to speak to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// The one that was named.
    Named(Server),
    /// The first of these that answers.
    FirstOf(Vec<Server>),
}

impl Address {
    /// Opens a connection, and says to which server.
    pub(super) async fn connect(&self) -> Result<(Server, UnixStream), ClientError> {
        let candidates = match self {
            Self::Named(server) => std::slice::from_ref(server),
            Self::FirstOf(servers) => servers,
        };
        let mut failure = None;
        for server in candidates {
            let Server::Unix(path) = server;
            match UnixStream::connect(path).await {
                Ok(stream) => return Ok((server.clone(), stream)),
                // A daemon one may not speak to says more than a place without one.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    failure = Some(ClientError::NoPermission { path: path.clone() });
                }
                Err(error) => {
                    let silent = ClientError::NoDaemon { path: path.clone(), error };
                    failure = match failure {
                        Some(denied @ ClientError::NoPermission { .. }) => Some(denied),
                        Some(_) | None => Some(silent),
                    };
                }
            }
        }
        Err(failure.unwrap_or(ClientError::NoAddress))
    }
}
