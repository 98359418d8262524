//! What users declare, inside a record: the API's own v1 JSON, as text.
//!
//! The API promises that what it once took it will always take, which is the promise a frozen type
//! would have to make again field by field. So a spec is stored as it is served, and reads back
//! through the same types and defaults; everything the server itself keeps has frozen types.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Unreadable;

/// One declared value.
#[derive(Serialize, Deserialize)]
pub(super) struct DeclaredV1(String);

impl DeclaredV1 {
    pub(super) fn of(live: &impl Serialize) -> Self {
        Self(serde_json::to_string(live).expect("declared values have text keys and finite numbers"))
    }

    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, Unreadable> {
        serde_json::from_str(&self.0).map_err(|_| Unreadable::Malformed)
    }
}
