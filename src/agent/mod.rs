//! Inside a member: init, wire frames, ssh, the configuration pass.
