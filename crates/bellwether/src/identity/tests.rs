use super::{Identity, parse};
use crate::interface::Ticker;

fn ticker(name: &str) -> Ticker {
    name.parse().unwrap()
}

fn day(text: &str) -> i32 {
    text.parse::<chrono::NaiveDate>().unwrap().to_epoch_days()
}

/// Facebook became Meta, whose name an index fund had had before.
const RENAMES: &str = include_str!("renames.csv");

fn renames() -> Identity {
    Identity::of(parse(RENAMES).unwrap())
}

#[test]
fn a_ticker_has_an_id_on_the_days_that_the_file_gives() {
    let renames = renames();
    for (name, date, id) in [
        ("FB", "2012-05-17", None),
        ("FB", "2012-05-18", Some("META-1")),
        ("FB", "2022-06-08", Some("META-1")),
        ("FB", "2022-06-09", None),
        ("META", "2021-06-29", None),
        ("META", "2022-01-28", Some("ETF-1")),
        // The history of Facebook that a vendor lists under the new name as well.
        ("META", "2022-03-01", None),
        ("META", "2022-06-09", Some("META-1")),
        ("META", "2099-12-31", Some("META-1")),
        // Another ticker is its own id, unless that is the id of others.
        ("XOM", "2022-06-09", Some("XOM")),
        ("ETF-1", "2022-06-09", None),
    ] {
        assert_eq!(renames.id(&ticker(name), day(date)), id, "{name} on {date}");
        assert_eq!(Identity::default().id(&ticker(name), day(date)), Some(name));
    }
    let of_id = |id, date| renames.ticker(id, day(date)).map(Ticker::as_str);
    assert_eq!(of_id("META-1", "2022-06-08"), Some("FB"));
    assert_eq!(of_id("META-1", "2022-06-09"), Some("META"));
    assert_eq!((of_id("META-1", "2012-05-17"), of_id("XOM", "2022-06-09")), (None, None));
    assert!(renames.lists(&ticker("FB")) && !renames.lists(&ticker("XOM")));
    let ids: Vec<_> = renames.ids().collect();
    assert_eq!(ids, [("ETF-1", vec![&ticker("META")]), ("META-1", vec![&ticker("FB"), &ticker("META")])]);
    assert_eq!(renames.shared_id(&ticker("FB"), &ticker("META")), Some("META-1"));
    assert_eq!(renames.shared_id(&ticker("FB"), &ticker("XOM")), None);
    assert_eq!((renames.counts(), Identity::default().counts()), ([2, 2], [0, 0]));
}

#[test]
fn the_order_of_lines_and_columns_makes_no_difference_and_a_date_does() {
    let other = "\u{feff}id,\"ticker\",to,from\r\nMETA-1,META,,2022-06-09 00:00:00\r\nMETA-1,FB,2022-06-08,2012-05-18\r\n\r\n\
                 ETF-1,META,2022-01-28,2021-06-30\r\n";
    assert_eq!(Identity::of(parse(other).unwrap()).digest(), renames().digest());
    let later = RENAMES.replace("2022-06-09", "2022-06-10");
    assert_ne!(Identity::of(parse(&later).unwrap()).digest(), renames().digest());
    assert_eq!(Identity::default().digest(), None);
}

#[test]
fn a_line_that_gives_no_ticker_an_id_is_refused_with_its_number() {
    for (text, why) in [
        ("", "it has no column `ticker`: the first line names `ticker`, `from`, `to` and `id`"),
        (
            "ticker,from,to,id,name\nFB,,,1,Facebook\n",
            "it has a column `name`: the columns are `ticker`, `from`, `to` and `id`",
        ),
        ("ticker,from,to,id\n", "it lists no tickers"),
        (
            "ticker,from,to,id\nFFFFFFFFFFFFFFFFFFFFFFFFF,,,1\n",
            "line 2: `FFFFFFFFFFFFFFFFFFFFFFFFF` is not a ticker: write a symbol such as `XOM` or `BRK.B`",
        ),
        ("ticker,from,to,id\nFB,9.6.2022,,1\n", "line 2: `9.6.2022` is not a date: write `2026-11-20`"),
        (
            "ticker,from,to,id\nFB,2022-06-09,2022-06-08,1\n",
            "line 2: 2022-06-08 is before 2022-06-09: write the first date, then the last",
        ),
        ("ticker,from,to,id\nFB,,2022-06-08\n", "line 2: `FB` has no id: write 1 to 64 characters"),
        ("ticker,from,to,id\nFB,,,Meta, Inc.\n", "line 2: it has 5 fields, and the first line has 4"),
        (
            "ticker,from,to,id\nFB,,2022-06-08,1\nXOM,,,2\nFB,2022-06-08,,3\n",
            "line 4: `FB` has the ids `1` and `3` on 2022-06-08, as line 2 says as well: end one before the other begins",
        ),
        (
            "ticker,from,to,id\nMETA,2022-06-09,,1\nFB,,2022-06-09,1\n",
            "line 3: `META` and `FB` have the id `1` on 2022-06-09, as line 2 says as well: end one before the other begins",
        ),
        (
            "ticker,from,to,id\nFB,,,1\nFB,,,1\n",
            "line 3: `FB` has the ids `1` and `1` on all days, as line 2 says as well: end one before the other begins",
        ),
    ] {
        assert_eq!(parse(text).unwrap_err().to_string(), why, "{text}");
    }
}
