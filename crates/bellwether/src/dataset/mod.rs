//! Builds the rows of a dataset from a view of the archive: news features, joined to signals, sorted.
//!
//! A slab of whole tickers goes through four steps. `signals` turns its names into numbers and its dates into naive ones
//! (by `naive`). `features` computes what is known of the news for each of the `keys`, which are tickers and dates that have
//! signals. `join` puts the rows in order: directly if all series of a ticker have the same dates, otherwise by sorting.
//! `build` makes the declared columns, in which the signals of a ticker and a date share their values.
//! Slabs are read in order, and joined several at once, each on one thread, while earlier ones are delivered.
//!
//! A signal of date D uses articles dated D minus the lag and earlier, never later ones: there is no nearest and no
//! forward join. One rule determines both dates, and if both instants are known an article is never later than the
//! signal that uses it (see `naive` for the full rule). The values of a window depend only on the articles in it, not
//! on their order (`statistics`), so they do not depend on threads or on the rest of the archive. A filter selects rows and
//! never changes them.
//!
//! A dataset of news has no signals, and to one of all vintages, with a row for each value that a signal had, nothing is
//! joined: `unjoined` makes their rows.

mod build;
mod external_sort;
mod features;
mod join;
mod keys;
mod live;
mod naive;
mod news;
mod signals;
mod statistics;
mod unjoined;
mod wide;

pub(crate) use build::no_rows;
pub use build::{DatasetInput, build, count_live};
pub(crate) use external_sort::join_failed;
#[cfg(feature = "harness")]
pub(crate) use join::RowOrder;
pub use naive::with_naive_dates;
pub use signals::{Counts, SeriesNames};
pub use unjoined::{Articles, Observations, articles, observations};
pub use wide::Wide;

#[cfg(test)]
mod tests {
    use super::Counts;
    use crate::tables::ArticleCounts;

    #[test]
    fn the_counts_of_slabs_add_up() {
        let counts = |repeated_signals, all, unscored, repeated| Counts {
            repeated_signals,
            seen_live: 2 * repeated_signals,
            articles: ArticleCounts { all, unscored, repeated },
        };
        let mut all = counts(1, 2, 3, 4);
        all += counts(10, 20, 30, 40);
        assert_eq!(all, counts(11, 22, 33, 44));
    }
}
