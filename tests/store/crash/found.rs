//! What a look at the whole store shows.

use std::collections::BTreeMap;

use ringleader::object::CORE_GROUP;
use ringleader::view::{Listing, Resource};

use super::super::*;
use super::script::{self, PAIRS, WRITERS};

/// A look that is whole: each writer's users are as one of its steps left them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub version: u64,
    /// How far each writer came.
    pub steps: Vec<u64>,
    /// The version of each user there is, by name.
    pub users: BTreeMap<String, u64>,
}

impl Found {
    pub fn nothing() -> Self {
        Self { steps: vec![0; WRITERS], ..Self::default() }
    }

    pub fn of(view: &View) -> Result<Self, String> {
        Self::of_listing(&view.list(CORE_GROUP, "users", None))
    }

    pub fn of_listing(listing: &Listing) -> Result<Self, String> {
        let by_name: BTreeMap<&str, &Resource> =
            listing.items.iter().map(|user| (user.key.name.as_str(), &**user)).collect();
        let steps = (0..WRITERS).map(|writer| steps_of(writer, &by_name)).collect::<Result<Vec<_>, _>>()?;
        let users = by_name.iter().map(|(name, user)| ((*name).to_owned(), user.version)).collect();
        Ok(Self { version: listing.version, steps, users })
    }
}

/// The number of the step that wrote this user.
pub fn text(user: &Resource) -> &str {
    let text = user.value["spec"]["displayName"].as_str().unwrap_or_default();
    text.split(' ').next().unwrap_or_default()
}

fn steps_of(writer: usize, users: &BTreeMap<&str, &Resource>) -> Result<u64, String> {
    let text_of = |pair, side| {
        let user = users.get(script::name(writer, pair, side).as_str());
        user.map(|user| text(user).parse::<u64>().expect("a number"))
    };
    let mut pairs = Vec::new();
    for pair in 0..PAIRS {
        let [left, right] = [0, 1].map(|side| text_of(pair, side));
        if left != right {
            return Err(format!("half of a submission of writer {writer}: {left:?} and {right:?}"));
        }
        pairs.push(left);
    }
    script::step_of(&pairs).ok_or_else(|| format!("writer {writer} was never at {pairs:?}"))
}
