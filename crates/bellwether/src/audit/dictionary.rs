//! What each column of the rows of an audit means: the words of the page of columns.

use arrow::datatypes::SchemaRef;

use super::{quality, revisions, skill, sources, table};
use crate::plan::Meaning;

/// The rows that an audit writes with `--output`.
#[derive(Clone, Debug)]
pub struct AuditRows {
    /// The audit, as in its command.
    pub audit: &'static str,
    /// What has a row, as a sentence.
    pub each: &'static str,
    /// The columns.
    pub schema: SchemaRef,
    /// What each of them means, in their order.
    pub meanings: Vec<Meaning>,
}

/// The rows of every audit that writes some. Those of `diff` have the columns of its versions.
pub fn audit_rows() -> [AuditRows; 5] {
    let changes = "A row for each value that was added late, revised or withdrawn.";
    let disagreements = "A row for each value about which two operations contradict each other.";
    let measures =
        "For each pair or feature and state, a row for each date, one for all dates, and one for each group of `by`.";
    let values = "A row for each value that was not the latest known by the time of decision.";
    [
        ("revisions", changes, revisions::schema(), revision()),
        ("sources", disagreements, sources::schema(), disagreement()),
        ("quality", "A row for each finding.", quality::schema(), finding()),
        ("skill", measures, skill::schema(), measure()),
        ("table", values, table::schema(), of_table()),
    ]
    .map(|(audit, each, schema, meanings)| AuditRows { audit, each, schema, meanings })
}

const INSTANT: &str = "2026-11-24T21:30:04.118203Z";
const DATE: &str = "2026-11-24T00:00:00";

const OF_NEWS: &str = "the row is about an article";
const OF_SIGNALS: &str = "the row is about a signal";
const SCALE: &str = "the vendor's scale";

fn ticker() -> Meaning {
    Meaning::always("the symbol, as the vendor spells it", "XOM")
}

fn period() -> Meaning {
    Meaning::unless(OF_NEWS, "the horizon", "5d")
}

fn regime() -> Meaning {
    Meaning::unless(OF_NEWS, "the market regime", "neutral")
}

fn revision() -> Vec<Meaning> {
    let added = "it was added late, or the row is about an article";
    let withdrawn = "it was withdrawn, or the row is about an article";
    vec![
        Meaning::always("the operation that returned the new value, or no longer the old one", "signals-history-all"),
        ticker(),
        Meaning::unless("no sector lists the ticker", "the sector of the ticker", "energy"),
        period(),
        regime(),
        Meaning::always("the date of the signal or article", DATE),
        Meaning::unless(OF_SIGNALS, "the headline", "Exxon raises its dividend"),
        Meaning::unless(OF_SIGNALS, "the address of the article", "https://news.example.com/1"),
        Meaning::always("`added_late`, `revised` or `withdrawn`", "revised"),
        Meaning::always("how old the date was when the change was observed", "12").in_unit("calendar days"),
        Meaning::unless(added, "the direction before", "buy"),
        Meaning::unless(withdrawn, "the direction after", "sell"),
        Meaning::unless(added, "the confidence before", "0.6664").in_unit(SCALE),
        Meaning::unless(withdrawn, "the confidence after", "0.5871").in_unit(SCALE),
        Meaning::unless("the row is about a signal, or there was none", "the score before", "0.41").in_unit(SCALE),
        Meaning::unless("the row is about a signal, or there is none", "the score after", "-0.12").in_unit(SCALE),
        Meaning::unless("it was added late", "when an answer had the old value for the first time", INSTANT),
        Meaning::always("when an answer had the new value for the first time, or no longer the old one", INSTANT),
    ]
}

fn disagreement() -> Vec<Meaning> {
    let mut meanings = vec![
        ticker(),
        period(),
        regime(),
        Meaning::always("the date, as written in the answer", DATE),
        Meaning::always(
            "`signal`, or the article of a summary: `low_article`, `high_article` or `avg_article`",
            "signal",
        ),
        Meaning::unless(OF_SIGNALS, "the address of the article", "https://news.example.com/1"),
    ];
    for which in ["one operation", "the other operation"] {
        meanings.extend([
            Meaning::always(which, "signals-history"),
            Meaning::unless(OF_NEWS, format!("the direction that {which} said last"), "buy"),
            Meaning::unless(OF_NEWS, format!("the confidence that {which} said last"), "0.6664").in_unit(SCALE),
            Meaning::unless(
                "the row is about a signal, or it gave none",
                format!("the score that {which} said last"),
                "0.41",
            )
            .in_unit(SCALE),
            Meaning::always(
                &format!("when what {which} says was said for the first time, by whichever operation"),
                INSTANT,
            ),
        ]);
    }
    meanings
}

fn finding() -> Vec<Meaning> {
    let whole = "the finding is about more than a ticker";
    vec![
        Meaning::always(
            "`gap`, `stale`, `duplicate`, `unusual`, `reject`, `drift` (an unknown field), `window`, `cut_off`, \
             `split_days` or `rename`",
            "gap",
        ),
        Meaning::unless("the finding is of no operation", "the operation", "signals-history-all"),
        Meaning::unless(whole, ticker().what, "XOM"),
        Meaning::unless("the finding is about news, or about more than a ticker", "the horizon", "5d"),
        Meaning::unless("the finding is about news, or about more than a ticker", "the market regime", "neutral"),
        Meaning::unless("the finding has no date", "the date, or the first of several", DATE),
        Meaning::unless("the finding has one date or none", "the last date", DATE),
        Meaning::unless(
            "the finding is a single value",
            "how many: days, signals, articles, records, fields, tickers or shared dates, by `finding`",
            "3",
        ),
        Meaning::unless(
            "the finding has no value",
            "the unusual confidence or score; of `window`, the share of signals with news among those of which it is known; of \
             `rename`, the share of the shared dates with the same signal",
            "0.9626",
        ),
        Meaning::unless("there is nothing to add", "the reason, field, headline, window, length or successor", "7d"),
    ]
}

fn measure() -> Vec<Meaning> {
    let of_a_date = "the row is of a date";
    let tested = "the row is of a date, or there are too few windows";
    let of_all = "the row is not of all dates, or there are too few windows";
    let sides = "the row is of a feature or a group";
    let mut meanings = vec![
        Meaning::always("the horizon", "5d"),
        Meaning::always("the market regime; of a feature, the one at whose signals it is measured", "neutral"),
        Meaning::always("`published`, `today` or `difference`", "published"),
        Meaning::unless("the row is of signals", "the feature of the news", "news_mean_7d"),
        Meaning::unless("the row is of all dates or a group", "the date of the signals", DATE),
        Meaning::unless(
            "the row is of a date or of all dates",
            "what the group is by: `lag`, `year`, `sector`, `news`, `within` sectors, or `given` beta or the signal",
            "sector",
        ),
        Meaning::unless(
            "the row is of a date or of all dates",
            "the group: a lag, a year, a sector, a window and its number of articles, `sectors`, `beta`, or `signal`, beside which a feature is measured",
            "7d 3-9",
        ),
        Meaning::unless(
            "there are no dates",
            "the names with a signal and a return; of several dates, their mean",
            "155",
        )
        .in_unit("names"),
        Meaning::unless(
            "all numbers or all returns of the date are equal, or there are too few names",
            "the rank correlation with the return over the horizon, the partial one given the signal; of several dates, their mean",
            "0.0429",
        )
        .in_unit("-1 to 1"),
        Meaning::unless(
            "the row is not of a date, or is of a feature",
            "the mean return of the names over the horizon",
            "0.0031",
        )
        .in_unit("share"),
    ];
    for (which, way, excess) in [
        ("buys", "which should be positive", "0.0026"),
        ("sells", "which should be negative", "-0.0009"),
        ("signals of the most confident fifth", "in the direction of each signal", "0.0031"),
    ] {
        meanings.extend([
            Meaning::unless(sides, format!("the {which}"), "78").in_unit("signals"),
            Meaning::unless(sides, format!("the {which} that came true, relative to the median of the date"), "41")
                .in_unit("signals"),
            Meaning::unless(
                "the row is of a feature or a group, or there are none",
                format!("the mean return after the {which}, less the mean of the date, {way}"),
                excess,
            )
            .in_unit("share"),
        ]);
    }
    meanings.extend([
        Meaning::unless(
            "the row is of a feature or a group, or there are too few names",
            "the mean return of the highest fifth less that of the lowest",
            "0.0058",
        )
        .in_unit("share"),
        Meaning::unless(of_a_date, "the dates with a correlation", "1249").in_unit("dates"),
        Meaning::unless(of_a_date, "how many dates a return overlaps with, its own included", "5").in_unit("dates"),
        Meaning::unless(of_a_date, "the windows of a whole horizon that do not overlap", "249").in_unit("windows"),
        Meaning::unless("the row is not of all dates", "the share of dates with a correlation above zero", "0.58")
            .in_unit("share"),
        Meaning::unless(tested, "the standard error of the mean correlation, which allows for the overlap", "0.0046"),
        Meaning::unless(tested, "its degrees of freedom", "47"),
        Meaning::unless(tested, "the lower end of the 95 % interval", "0.034"),
        Meaning::unless(tested, "the upper end of the 95 % interval", "0.052"),
        Meaning::unless(tested, "the p-value of no correlation", "0.0002"),
        Meaning::unless(of_all, "the p-value after Holm, among all tests of the state", "0.0031"),
        Meaning::unless(of_all, "the p-value after Benjamini and Hochberg, among all tests of the state", "0.0008"),
        Meaning::unless(of_all, "the mean correlation of dates whose windows do not overlap", "0.0418")
            .in_unit("-1 to 1"),
        Meaning::unless(of_all, "its p-value", "0.0004"),
        Meaning::unless(
            "the row is not of all dates of signals",
            "the share of signals that are the opposite of the one before",
            "0.0708",
        )
        .in_unit("share"),
    ]);
    meanings
}

fn of_table() -> Vec<Meaning> {
    vec![
        Meaning::always("the number of the row in the table, from 1 on", "17"),
        Meaning::always("the symbol, as the table has it", "XOM"),
        period(),
        regime(),
        Meaning::always("the date of the signal or article, as the table has it", DATE),
        Meaning::always("the time of decision", "2026-11-24T23:59:59.999999Z"),
        Meaning::always("the column of the value", "confidence"),
        Meaning::always("the value", "0.5871"),
        Meaning::always("`late`, `unclear`, `never`, `replaced` or `unknown`", "late"),
        Meaning::unless(
            "it never was published there, or is of a feature of the news",
            "when an answer had the value for the first time",
            INSTANT,
        ),
        Meaning::unless("none was", "the value that was known by the time of decision", "0.6664"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_an_audit_says_when_it_is_null_if_it_can_be() {
        for AuditRows { audit, schema, meanings, .. } in audit_rows() {
            assert_eq!(schema.fields().len(), meanings.len(), "{audit}");
            for (field, meaning) in schema.fields().iter().zip(meanings) {
                assert_eq!(field.is_nullable(), meaning.null.is_some(), "{audit}: {}", field.name());
            }
        }
    }
}
