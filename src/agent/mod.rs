//! Inside a member: init, wire frames, ssh, the configuration pass.

pub mod init;
