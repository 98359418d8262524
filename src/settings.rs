//! The daemon settings (daemon.toml).
