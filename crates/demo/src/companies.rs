//! The companies of the demo universe: five hundred constituents of the S&P 500, in eleven sectors.
//!
//! The table is `companies.tsv`, sorted by symbol. The data of a company does not depend on its row, so adding one
//! changes no other. Sector names are lower-case words without spaces, since they are part of queries.

use std::sync::LazyLock;

use bellwether_interface::Ticker;

/// One company.
#[derive(Debug)]
pub struct Company {
    /// Its symbol.
    pub ticker: Ticker,
    /// The name of its sector.
    pub sector: &'static str,
    /// Its name.
    pub name: &'static str,
}

/// The names of the sectors, in the order of the classification.
pub const SECTORS: [&str; 11] = [
    "energy",
    "materials",
    "industrials",
    "consumer-discretionary",
    "consumer-staples",
    "healthcare",
    "financials",
    "technology",
    "communication-services",
    "utilities",
    "real-estate",
];

static COMPANIES: LazyLock<Vec<Company>> = LazyLock::new(|| {
    let row = |line: &'static str| {
        let mut cells = line.split('\t');
        let ticker = cells.next()?.parse().ok()?;
        Some(Company { ticker, sector: cells.next()?, name: cells.next()? })
    };
    include_str!("companies.tsv").lines().map(|line| row(line).expect("a row is symbol, sector and name")).collect()
});

/// Every company, ordered by symbol.
pub fn all() -> &'static [Company] {
    &COMPANIES
}

/// The company with exactly this symbol.
pub fn find(symbol: &str) -> Option<&'static Company> {
    let index = COMPANIES.binary_search_by(|company| company.ticker.as_str().cmp(symbol)).ok()?;
    COMPANIES.get(index)
}

#[cfg(test)]
mod tests {
    use super::{SECTORS, all, find};

    #[test]
    fn the_table_is_sorted_and_every_sector_has_companies() {
        assert_eq!(all().len(), 500);
        assert!(all().is_sorted_by(|one, next| one.ticker.as_str() < next.ticker.as_str()));
        for company in all() {
            assert!(SECTORS.contains(&company.sector) && !company.name.is_empty(), "{company:?}");
        }
        for sector in SECTORS {
            assert!(all().iter().filter(|company| company.sector == sector).count() > 20, "{sector}");
        }
    }

    #[test]
    fn a_company_is_found_by_its_exact_symbol() {
        assert_eq!(find("AAPL").map(|company| company.name), Some("Apple"));
        assert_eq!(find("BRK.B").map(|company| company.sector), Some("financials"));
        assert!(find("BF.B").is_some() && find("aapl").is_none() && find("").is_none() && find("ZZZZ").is_none());
    }
}
