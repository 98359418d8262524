//! Pure: which provider call brings one machine nearer to its want.
