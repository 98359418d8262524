//! The labels, and every value each of them can have. What the API has a word for is called by
//! that word.

use crate::object::{LeasePhase, MemberState, PoolPhase};
use crate::pool::{BuildFailure, Ending, Removal, Start};

/// A label with a closed set of values.
pub trait Label: Copy + PartialEq + 'static {
    const NAME: &'static str;
    /// Every value.
    const ALL: &'static [Self];

    /// How the value is written.
    fn word(self) -> &'static str;
}

/// No label, one, or two.
pub trait LabelSet: Copy {
    /// Names and values of each combination, in the order of `index`.
    fn all() -> Vec<Vec<Pair>>;

    /// The place of this one among them.
    fn index(self) -> usize;
}

/// A label's name and a value of it.
pub type Pair = (&'static str, &'static str);

/// The `Label` of an enum. That no value is forgotten, the match sees to.
macro_rules! label {
    ($type:ty, $name:literal, { $($variant:ident => $word:literal),+ $(,)? }) => {
        impl Label for $type {
            const NAME: &'static str = $name;
            const ALL: &'static [Self] = &[$(Self::$variant),+];

            fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }
        }
    };
}

label!(Start, "start", { Warm => "warm", Resumed => "resumed", Cold => "cold" });

label!(Ending, "outcome", {
    Done => "done",
    NotRecycled => "not_recycled",
    Recycled => "recycled",
    RecycleFailed => "recycle_failed",
    RecycleTimedOut => "recycle_timed_out",
    ExpiredBound => "expired_bound",
    ExpiredUnbound => "expired_unbound",
    MemberLost => "member_lost",
    Cancelled => "cancelled",
    PoolDeleted => "pool_deleted",
});

label!(BuildFailure, "reason", {
    Create => "create",
    Start => "start",
    Broken => "broken",
    Setup => "setup",
    TimedOut => "timed_out",
    Other => "other",
});

label!(Removal, "reason", {
    Released => "released",
    Expired => "expired",
    RecycleFailed => "recycle_failed",
    BuildFailed => "build_failed",
    Lost => "lost",
    TemplateChanged => "template_changed",
    TooOld => "too_old",
    Surplus => "surplus",
    ByHand => "by_hand",
    PoolDeleted => "pool_deleted",
});

label!(MemberState, "state", {
    Building => "Building",
    Starting => "Starting",
    IdleRunning => "IdleRunning",
    IdleStopped => "IdleStopped",
    Leased => "Leased",
    Recycling => "Recycling",
    Stopping => "Stopping",
    Deleting => "Deleting",
});

label!(LeasePhase, "phase", {
    Pending => "Pending",
    Starting => "Starting",
    Ready => "Ready",
    Recycling => "Recycling",
    Releasing => "Releasing",
    Failed => "Failed",
});

label!(PoolPhase, "phase", {
    Pending => "Pending",
    Ready => "Ready",
    Degraded => "Degraded",
    Terminating => "Terminating",
});

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Get,
    Post,
    Put,
    Patch,
    Delete,
    Other,
}

label!(Verb, "verb", {
    Get => "get",
    Post => "post",
    Put => "put",
    Patch => "patch",
    Delete => "delete",
    Other => "other",
});

/// What became of a request: the first digit of its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeClass {
    Informational,
    Success,
    Redirection,
    ClientError,
    ServerError,
}

label!(CodeClass, "code", {
    Informational => "1xx",
    Success => "2xx",
    Redirection => "3xx",
    ClientError => "4xx",
    ServerError => "5xx",
});

impl CodeClass {
    /// The class of a status code.
    #[must_use]
    pub const fn of(code: u16) -> Self {
        match code / 100 {
            0 | 1 => Self::Informational,
            2 => Self::Success,
            3 => Self::Redirection,
            4 => Self::ClientError,
            _ => Self::ServerError,
        }
    }
}

impl LabelSet for () {
    fn all() -> Vec<Vec<Pair>> {
        vec![Vec::new()]
    }

    fn index(self) -> usize {
        0
    }
}

impl<L: Label> LabelSet for L {
    fn all() -> Vec<Vec<Pair>> {
        L::ALL.iter().map(|value| vec![(L::NAME, value.word())]).collect()
    }

    fn index(self) -> usize {
        L::ALL.iter().position(|value| *value == self).expect("ALL has every value")
    }
}

impl<A: Label, B: Label> LabelSet for (A, B) {
    fn all() -> Vec<Vec<Pair>> {
        let pairs = |a: &A| B::ALL.iter().map(|b| vec![(A::NAME, a.word()), (B::NAME, b.word())]).collect();
        A::ALL.iter().flat_map(|a| -> Vec<Vec<Pair>> { pairs(a) }).collect()
    }

    fn index(self) -> usize {
        self.0.index() * B::ALL.len() + self.1.index()
    }
}
