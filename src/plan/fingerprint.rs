//! The fingerprint of a plan: everything that determines the files of its dataset.

use super::{FilesPlan, Plan};
use crate::digest;

impl Plan {
    /// The digest of everything in a plan that determines the bytes of its dataset's files, and of the program's
    /// version. Two plans with the same fingerprint build the same files from the same observations.
    pub fn fingerprint(&self) -> String {
        // Every field is listed, so that a new one is not forgotten.
        let Self {
            // The text is in the files, and determines everything that options do not.
            text,
            checks: _,
            source: _,
            service: _,
            names_service: _,
            ways: _,
            of_each_ticker: _,
            news_tickers: _,
            limits: _,
            max_reject_share: _,
            keep_extra: _,
            schedule: _,
            store: _,
            hooks: _,
            description: _,
            path: _,
            // These may be changed by options.
            name,
            dataset,
            files,
        } = self;
        // The bytes of the files do not depend on how many versions are kept.
        let files = FilesPlan { keep: 0, ..files.clone() };
        let parts = [env!("CARGO_PKG_VERSION"), name, text, &format!("{dataset:?}"), &format!("{files:?}")];
        digest::of(&serde_json::to_vec(&parts).expect("texts are texts"))
    }
}
