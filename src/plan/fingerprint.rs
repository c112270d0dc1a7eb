//! What of a plan decides on the files of its dataset.

use super::{FilesPlan, Plan};
use crate::digest;

impl Plan {
    /// The digest of everything in a plan that decides on the bytes of its dataset's files, and of this program's version.
    /// Built from the same observations, two plans with one fingerprint give the same files.
    pub fn fingerprint(&self) -> String {
        // Each field is named, so that a new one is not forgotten.
        let Self {
            // The text is in the files, and what is asked for follows from it: no option changes that.
            text,
            checks: _,
            source: _,
            ways: _,
            of_each_ticker: _,
            news_tickers: _,
            manners: _,
            max_reject_share: _,
            keep_extra: _,
            schedule: _,
            description: _,
            path: _,
            // These may be changed by options.
            name,
            dataset,
            files,
        } = self;
        // How many versions are kept is the only thing about files that their bytes do not depend on.
        let files = FilesPlan { keep: 0, ..files.clone() };
        let parts = [env!("CARGO_PKG_VERSION"), name, text, &format!("{dataset:?}"), &format!("{files:?}")];
        digest::of(&serde_json::to_vec(&parts).expect("texts are texts"))
    }
}
