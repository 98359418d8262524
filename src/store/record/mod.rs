//! Frozen types of what is on disk, one file a kind, and the envelope around them.
