//! What changed between two texts of a definition, key by key. Keys that may hold secrets are left out.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use toml::{Table, Value};

/// The beginnings of keys whose values are nobody's business: addresses of hooks, and how to get the API key.
const SECRET: [&str; 2] = ["hooks.", "source.api_key"];

/// A key with another value, each as it was typed; none where it was not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChangedKey {
    /// The key, with its section: `join.lag`.
    pub key: String,
    /// Its value before.
    pub before: Option<String>,
    /// Its value after.
    pub after: Option<String>,
}

/// The keys that differ between two texts of a definition; a text that is not TOML has none.
pub fn changed_keys(before: &str, after: &str) -> Vec<ChangedKey> {
    let [before, after] = [before, after].map(keys);
    let mut all: Vec<&String> = before.keys().chain(after.keys()).collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter()
        .filter(|key| !SECRET.iter().any(|secret| key.starts_with(secret)))
        .map(|key| ChangedKey { key: key.clone(), before: before.get(key).cloned(), after: after.get(key).cloned() })
        .filter(|changed| changed.before != changed.after)
        .collect()
}

impl fmt::Display for ChangedKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [before, after] = [&self.before, &self.after].map(|value| value.as_deref().unwrap_or("not set"));
        write!(formatter, "{}: {before}, now {after}", self.key)
    }
}

/// Each key with its value.
fn keys(text: &str) -> BTreeMap<String, String> {
    let mut keys = BTreeMap::new();
    add(&mut keys, "", toml::from_str(text).unwrap_or_default());
    keys
}

fn add(keys: &mut BTreeMap<String, String>, section: &str, table: Table) {
    for (name, value) in table {
        let key = if section.is_empty() { name } else { format!("{section}.{name}") };
        match value {
            Value::Table(table) => add(keys, &key, table),
            value => _ = keys.insert(key, value.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::changed_keys;

    #[test]
    fn keys_differ_by_their_values_and_not_by_how_they_are_written() {
        let before = "signals.sectors = [\"energy\"]\n[join]\nlag = \"1d\" # a remark\nwindows = \"7d\"\n";
        let after = "[signals]\nsectors = ['energy']\n[join]\nlag = \"2d\"\n[output]\nrow_group_rows = 1_000\n";
        let changed: Vec<String> = changed_keys(before, after).iter().map(ToString::to_string).collect();
        let expected = [
            "join.lag: \"1d\", now \"2d\"",
            "join.windows: \"7d\", now not set",
            "output.row_group_rows: not set, now 1000",
        ];
        assert_eq!(changed, expected);
        assert!(changed_keys(after, after).is_empty());
        assert_eq!(changed_keys("from = 2026-01-01", "from = 2026-02-01").len(), 1);
        assert!(changed_keys("hooks.ping = \"https://a/token\"", "").is_empty());
        assert!(changed_keys("not toml", "nor this").is_empty());
    }
}
