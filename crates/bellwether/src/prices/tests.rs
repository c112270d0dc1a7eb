use std::collections::HashMap;
use std::path::Path;

use super::{Day, Prices, number};
use crate::identity::Identity;
use crate::interface::Ticker;

fn day(text: &str) -> Day {
    number(text.parse().unwrap())
}

#[test]
fn a_close_is_that_of_the_ticker_that_an_id_has_on_the_day() {
    const NONE: f64 = f64::NAN;
    let days = ["2022-01-27", "2022-01-28", "2022-01-31", "2022-06-08", "2022-06-09", "2022-06-10"];
    let ticker = |name: &str| name.parse::<Ticker>().unwrap();
    let tickers: HashMap<Ticker, u16> = [(ticker("FB"), 0), (ticker("META"), 1), (ticker("XOM"), 2)].into();
    let closes = [
        // A name that ends, with holes on the 28th of January and the 8th of June.
        [1.0, NONE, 4.0, NONE, NONE, NONE],
        // A fund until the 28th of January; then nobody; from the 9th of June on, that of the other name.
        [10.0, 20.0, 30.0, 8.0, 16.0, NONE],
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    ];
    let prices = Prices::new(days.map(day).to_vec(), tickers, closes.concat(), Vec::new());
    let identity = Identity::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/identity/renames.csv")).unwrap();
    let mut prices = prices.by_id(&identity).unwrap();
    assert_eq!(prices.reopenings, [3]);
    assert_eq!(prices.between(2, 0, 3), None, "nothing is known of four months");
    assert!(prices.lack(day("2022-02-01"), 3) && !prices.lack(day("2022-06-08"), 3));
    // As if the file had all sessions.
    prices.reopenings.clear();
    let of = |name: &str, date: &str| prices.of_ticker(&ticker(name)).number(day(date));
    let company = of("FB", "2022-01-27").unwrap();
    let fund = of("META", "2022-01-27").unwrap();
    assert_eq!((of("META", "2022-06-09"), of("META", "2022-03-01")), (Some(company), None));
    assert_eq!((of("XOM", "2022-03-01"), of("CVX", "2022-03-01")), (Some(2), None));
    // From the first close: the hole of the 28th is not filled by the fund, and that of the 8th of June is by its own later name.
    let returns = |id: u16| [1, 2, 3, 4, 5].map(|exit| prices.between(id, 0, exit));
    assert_eq!(returns(company), [None, Some(3.0), Some(7.0), Some(15.0), None]);
    assert_eq!(returns(fund), [Some(1.0), None, None, None, None]);
    let under_another =
        |name: &str, date: &str, exit| prices.of_ticker(&ticker(name)).is_under_another(day(date), exit);
    assert!(under_another("FB", "2022-06-08", 4) && !under_another("FB", "2022-06-08", 3));
    assert!(!under_another("META", "2022-06-09", 5) && !under_another("XOM", "2022-01-27", 5));
    assert!(prices.know(&ticker("FB")) && !prices.know(&ticker("CVX")));
    assert_eq!(prices.tickers(), ["FB", "META", "XOM", "META", "META"].map(ticker).iter().collect::<Vec<_>>());
    assert_eq!((prices.summary.tickers, prices.summary.closes), (3, 13));
}
