//! Packets with descriptors over a `SOCK_SEQPACKET` socket.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::wire::{MAX_DESCRIPTORS, MAX_PACKET_BYTES};

/// Two connected ends; both close on exec.
///
/// # Errors
/// When there is no descriptor left.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends one message with its descriptors. Several processes may send on one socket: a packet
/// arrives whole or not at all.
///
/// # Errors
/// When the message is too large or nobody can receive it.
pub fn send(socket: impl AsFd, message: &impl Serialize, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    if bytes.len() > MAX_PACKET_BYTES || descriptors.len() > MAX_DESCRIPTORS {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the message is too large for the launcher"));
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    sendmsg(socket, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives one message, or none when no sender is left.
///
/// # Errors
/// When the message is too large or not one of type `T`.
pub fn receive<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut bytes = vec![0; MAX_PACKET_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::io::retry_on_intr(|| {
        let mut parts = [IoSliceMut::new(&mut bytes)];
        recvmsg(socket.as_fd(), &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC)
    })?;
    let descriptors = ancillary
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        })
        .flatten()
        .collect();
    if received.bytes == 0 {
        return Ok(None);
    }
    if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a packet was cut off"));
    }
    let message = serde_json::from_slice(&bytes[..received.bytes])?;
    Ok(Some((message, descriptors)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_arrives_with_its_descriptors() {
        let (left, right) = pair().expect("a socket pair");
        let file = tempfile::tempfile().expect("a file");
        send(&left, &"hello", &[file.as_fd()]).expect("sent");
        let (message, descriptors) = receive::<String>(&right).expect("received").expect("not the end");
        assert_eq!(message, "hello");
        assert_eq!(descriptors.len(), 1);
    }

    #[test]
    fn the_end_is_no_error() {
        let (left, right) = pair().expect("a socket pair");
        drop(left);
        assert!(receive::<String>(&right).expect("no error").is_none());
    }

    #[test]
    fn a_message_past_the_bound_is_refused_before_it_is_sent() {
        let (left, _right) = pair().expect("a socket pair");
        let error = send(&left, &"x".repeat(MAX_PACKET_BYTES), &[]).expect_err("too large");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
