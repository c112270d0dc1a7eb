//! Ad hoc builds: datasets that options of the command line narrow or change.
//!
//! A definition's own dataset is what its file says, as of the latest state of the archive. Anything else is
//! exploration, which others must not read by accident: it goes to a separate folder, and its record has the options.

use std::str::FromStr;

use chrono::{DateTime, Utc};

use super::{Claims, Column, Filter, Format, Labels, Plan, RowKind, Shape, Vintage};
use crate::definition::Added;
use crate::error::{Error, Reason, Result};
use crate::interface::Period;
use crate::time::as_typed;

/// The options of a build that override its definition. Without any, the build is the definition's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdHoc {
    /// Runs sealed after this instant are ignored.
    pub as_of: Option<DateTime<Utc>>,
    /// The version whose runs are used, and no others.
    pub version: Option<PinnedVersion>,
    /// Another vintage.
    pub vintage: Option<Vintage>,
    /// Whether claims count that the definition leaves out.
    pub claims: Claims,
    /// A narrower filter on the signals.
    pub filter: Filter,
    /// Other formats; empty for those of the definition.
    pub formats: Vec<Format>,
    /// Columns to add.
    pub add: Vec<Added>,
    /// Horizons of returns to add; empty for those of the definition.
    pub labels: Vec<Period>,
    /// Another lag of entries, in sessions.
    pub lag: Option<u32>,
}

/// A version to rebuild.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedVersion {
    /// Its name.
    pub name: String,
    /// The runs that it was built from.
    pub runs: Vec<String>,
}

impl AdHoc {
    /// Whether there are no options.
    pub fn is_none(&self) -> bool {
        self.options().is_empty()
    }

    /// The options, as `build` takes them: their names without `--`, and a value each.
    pub fn options(&self) -> Vec<(&'static str, String)> {
        let Self { as_of, version, vintage, claims, filter, formats, add, labels, lag } = self;
        // Only a definition has pairs, and a universe.
        let Filter { tickers, sectors, periods, regimes, pairs: _, signals, min_confidence, from, to, universe: _ } =
            filter;
        let mut options: Vec<(&'static str, String)> = Vec::new();
        fn each<T: ToString>(name: &'static str, values: impl IntoIterator<Item = T>) -> Vec<(&'static str, String)> {
            values.into_iter().map(|value| (name, value.to_string())).collect()
        }
        let as_of = version.as_ref().map(|version| version.name.clone()).or(as_of.map(as_typed));
        options.extend(each("as-of", as_of));
        options.extend(each("vintage", *vintage));
        options.extend(each("include", (*claims == Claims::Included).then_some("claimed")));
        options.extend(each("ticker", tickers.iter().flatten()));
        options.extend(each("sector", sectors.iter().flatten()));
        options.extend(each("period", periods.iter().flatten()));
        options.extend(each("regime", regimes.iter().flatten()));
        options.extend(each("signal", signals.iter().flatten()));
        options.extend(each("min-confidence", *min_confidence));
        options.extend(each("from", *from));
        options.extend(each("to", *to));
        options.extend(each("format", formats));
        options.extend(each("add", add));
        options.extend(each("labels", labels));
        options.extend(each("lag", *lag));
        options
    }

    /// What the options of a recorded build say about its rows: all but the instant and the version, which its record has as
    /// well, and the formats.
    pub(crate) fn of_rows<'o>(
        options: impl IntoIterator<Item = (&'o String, &'o Vec<String>)>,
    ) -> std::result::Result<Self, Reason> {
        let mut found = Self::default();
        let filter = &mut found.filter;
        for (name, values) in options {
            match name.as_str() {
                "vintage" => found.vintage = parsed::<_, Vec<_>>(values)?.pop(),
                "include" => found.claims = Claims::Included,
                "ticker" => filter.tickers = Some(parsed(values)?),
                "sector" => filter.sectors = Some(parsed(values)?),
                "period" => filter.periods = Some(parsed(values)?),
                "regime" => filter.regimes = Some(parsed(values)?),
                "signal" => filter.signals = Some(parsed(values)?),
                "min-confidence" => filter.min_confidence = parsed::<_, Vec<_>>(values)?.pop(),
                "from" => filter.from = parsed::<_, Vec<_>>(values)?.pop(),
                "to" => filter.to = parsed::<_, Vec<_>>(values)?.pop(),
                "add" => found.add = parsed(values)?,
                "labels" => found.labels = parsed(values)?,
                "lag" => found.lag = parsed::<_, Vec<_>>(values)?.pop(),
                "as-of" | "format" => {}
                other => return Err(format!("`{other}` is not an option of a build").into()),
            }
        }
        Ok(found)
    }

    /// Applies the options to a plan. Filters only narrow that of the definition.
    ///
    /// # Errors
    ///
    /// If the dataset cannot have the columns that are to be added.
    pub fn apply(&self, plan: &mut Plan) -> Result<()> {
        let mut added: Vec<Column> = self.add.iter().copied().map(Column::from).collect();
        let rows = plan.dataset.rows;
        let is_any = !added.is_empty() || !self.labels.is_empty();
        if is_any && plan.dataset.shape != Shape::Long || !self.labels.is_empty() && rows != RowKind::Signal {
            let option = if self.labels.is_empty() { "add" } else { "labels" };
            let what = format!("`{option}` needs a row for each signal");
            return Err(Error::usage(what, "choose a long dataset of signals"));
        }
        if let Some(column) = added.iter().find(|column| !rows.can_have(**column)) {
            let what = format!("rows of `{}` have no `{}`", plan.name, column.name());
            return Err(Error::usage(what, "it is a column of signals: leave it out"));
        }

        if self.claims == Claims::Included {
            *plan = plan.clone().with_claims();
        }
        plan.dataset.filter = std::mem::take(&mut plan.dataset.filter).and(self.filter.clone());
        plan.dataset.vintage = self.vintage.unwrap_or(plan.dataset.vintage);
        let dataset = plan.dataset.clone();
        if added.contains(&Column::TradableAt) {
            // It is an assumption where the row was backfilled.
            added.push(Column::Backfilled);
        }
        plan.dataset = dataset.with_columns(added);
        plan.dataset.labels.lag = self.lag.unwrap_or(plan.dataset.labels.lag);
        if !self.labels.is_empty() {
            let labels = Labels { horizons: self.labels.clone(), ..plan.dataset.labels.clone() };
            plan.dataset = plan.dataset.clone().with_labels(labels);
        }
        if !self.formats.is_empty() {
            plan.files.formats.clone_from(&self.formats);
        }
        Ok(())
    }
}

/// The values of an option.
fn parsed<T: FromStr, C: FromIterator<T>>(values: &[String]) -> std::result::Result<C, Reason> {
    let parse =
        |value: &String| value.parse().map_err(|_| Reason::from(format!("`{value}` is not a value of its option")));
    values.iter().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::AdHoc;
    use crate::plan::{Added, Claims, Filter, Format, Vintage};

    #[test]
    fn every_option_is_named_and_without_one_a_build_matches_the_definition() {
        assert!(AdHoc::default().is_none());
        let filter = Filter {
            tickers: Some(BTreeSet::from(["XOM", "CVX"].map(|ticker| ticker.parse().unwrap()))),
            sectors: Some(BTreeSet::from(["energy".parse().unwrap()])),
            periods: Some(BTreeSet::from(["5d".parse().unwrap()])),
            regimes: Some(BTreeSet::from(["bull".parse().unwrap()])),
            pairs: None,
            signals: Some(BTreeSet::from(["buy".parse().unwrap()])),
            min_confidence: "0.6".parse().ok(),
            from: "2026-01-01".parse().ok(),
            to: "2026-02-01".parse().ok(),
            universe: None,
        };
        let all = AdHoc {
            as_of: "2026-03-31T23:59:59.999999Z".parse().ok(),
            version: None,
            vintage: Some(Vintage::First),
            claims: Claims::Included,
            filter,
            formats: vec![Format::Csv, Format::Arrow],
            add: vec![Added::TradableAt],
            labels: vec!["5d".parse().unwrap()],
            lag: Some(2),
        };
        let typed: Vec<String> = all.options().iter().map(|(name, value)| format!("{name} {value}")).collect();
        let expected = [
            "as-of 2026-03-31",
            "vintage first",
            "include claimed",
            "ticker CVX",
            "ticker XOM",
            "sector energy",
            "period 5d",
            "regime bull",
            "signal buy",
            "min-confidence 0.6",
            "from 2026-01-01",
            "to 2026-02-01",
            "format csv",
            "format arrow",
            "add tradable_at",
            "labels 5d",
            "lag 2",
        ];
        assert_eq!(typed, expected);
        let mut recorded: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in all.options() {
            recorded.entry(name.to_owned()).or_default().push(value);
        }
        let of_rows = AdHoc { as_of: None, formats: Vec::new(), ..all };
        assert_eq!(AdHoc::of_rows(&recorded).unwrap(), of_rows);
        assert!(AdHoc::of_rows(&BTreeMap::from([("ticker".to_owned(), vec!["not\none".to_owned()])])).is_err());
    }
}
