//! Runs the harnesses on pseudo-random mutations of known bodies, seeded so that failures are reproducible.

use crate::interface::Endpoint;

/// Known bodies, each with the operations that return it.
fn corpus() -> Vec<(Vec<Endpoint>, String)> {
    let entries = [
        r#"{"date":"2026-11-20T00:00:00","signal":"buy","confidence":0.75}"#,
        r#"{"date":"2026-11-19","signal":"sell","confidence":-1.5e3,"model":{"name":"a/b~c","v":[1,2]}}"#,
        r#"{ "confidence" : 0.123456789012345678, "signal" : "sell", "date" : "2026-11-18T09:30:00.25-05:00" }"#,
        r#"{"date":"2026-11-20T00:00:00Z","signal":"b\u0075y","confidence":1,"model":0}"#,
        r#"{"date":"2026-11-17t00:00:00z","signal":"SELL","confidence":1}"#,
    ]
    .join(",");
    let history = |ticker: &str, name: &str| {
        format!(r#"{{"ticker":"{ticker}","regime":"bull","note":"ü\n","{name}":[{entries}],"period":"15d"}}"#)
    };
    let many = format!(
        r#"{{"AAPL":{}, "BRK.B" : {},"A\u0041":{{"items":[],"ticker":"AA","period":"15d","regime":"bull"}}}}"#,
        history("AAPL", "predictions"),
        history("BRK.B", "items"),
    );
    let latest =
        r#"{"ticker":"AAPL","date":null,"period":"15d","regime":"bull","signal":"buy","confidence":0.5,"ei":1}"#;
    let older =
        r#"{"ticker":"AAPL","date":"2026-11-20T00:00:00Z","period":"15d","regime":"bull","ei":"sell","ci":1.5}"#;
    let reference = r#"{"date":"2026-11-20","score":"-0.25","link":"https://a/","title":"t"}"#;
    let summary = format!(
        r#"{{"debtor":"Apple","low_article":{reference},"high_article":{reference},"avg_article":{reference},{}}}"#,
        r#""ticker":"AAPL","n":1"#
    );
    let part =
        |name: &str| format!(r#""{name}_score_latest30":0.5,"{name}_link_latest30":"l","{name}_summary_latest30":"s""#);
    let trailing = format!(
        r#"{{"debtor":"Apple","ticker":"AAPL","crawl_date":"2026-11-20",{},{},{}}}"#,
        part("low"),
        part("high"),
        part("avg")
    );
    let articles = [
        r#"{"date":"2026-11-20","title":"a \"b\"","score":0.5,"link":"l","by":"x"}"#,
        r#"{"score":null,"date":"2026-11-19","link":"","title":"ä"}"#,
        r#"{"date":"2026-11-18","title":"t","score":"0.1","link":"l"}"#,
    ];
    // Uniform, as most are; then in another form, and back in the first one; one date is repeated.
    let alike: Vec<String> = (1..=12)
        .map(|day| {
            let signal = if day % 3 == 0 { "sell" } else { "buy" };
            let (offset, space) = if (6..9).contains(&day) { ("-05:00", " ") } else { ("-04:00", "") };
            let date = format!("2026-0{}-{:02}T00:00:00{offset}", day % 2 + 1, day / 2 + 27);
            format!(r#"{{"date":{space}"{date}","signal":"{signal}","confidence":0.{}}}"#, day * day * 7)
        })
        .collect();
    let alike = format!(r#"{{"ticker":"AAPL","regime":"bull","period":"15d","items":[{}]}}"#, alike.join(", "));
    let histories = vec![
        Endpoint::SignalsHistoryAll,
        Endpoint::SignalsHistoryBatchedAll,
        Endpoint::SignalsHistoryBatched,
        Endpoint::LegacyHistoryAll,
        Endpoint::LegacyHistoryBatched,
    ];
    vec![
        (histories, many),
        (vec![Endpoint::SignalsHistory], history("AAPL", "predictions")),
        (vec![Endpoint::LegacyHistory], history("AAPL", "items")),
        (vec![Endpoint::LegacyHistory], alike),
        (vec![Endpoint::Signals], latest.to_owned()),
        (vec![Endpoint::LegacySignals], older.to_owned()),
        (vec![Endpoint::SocialSentiment], summary),
        (vec![Endpoint::SocialSentiment], trailing),
        (vec![Endpoint::NewsArticles], format!("[{}]", articles.join(" , "))),
        (
            vec![Endpoint::HistoricalSentiment],
            r#"[{"date":"2026-11-20","score":0.5,"articles":3},[1],null]"#.to_owned(),
        ),
        (vec![Endpoint::HistoricalSentiment], r#"{"a":{"b":[1,2,{"c":"}"}]}}"#.to_owned()),
        (vec![Endpoint::TickersAvailable], r#"["AAPL", "BRK.B", "../x", "\u0041"]"#.to_owned()),
    ]
}

/// Texts that mutations write: tokens of JSON, and bytes that break it.
const TOKENS: [&str; 49] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\u0041",
    "\\ud800",
    "null",
    "true",
    "NaN",
    "-",
    "0",
    "1e999",
    "01",
    ".5",
    "1.5",
    "\"buy\"",
    "\"sell\"",
    "\"date\"",
    "\"signal\"",
    "\"confidence\"",
    "\"ticker\"",
    "\"period\"",
    "\"regime\"",
    "\"predictions\"",
    "\"items\"",
    "\"2026-11-20\"",
    "\"2026-11-20T00:00:00\"",
    "\"2026-02-30\"",
    "\"2026-11-20t00:00:00z\"",
    "\"0000-01-01\"",
    "\"BUY\"",
    "\"Sell\"",
    "\"AAPL\"",
    "\"bear\"",
    "\"1m\"",
    "\"x\":1,",
    ",\"x\":{\"y\":[]}",
    "\"ei\":\"buy\",",
    "\"score\":\"1\",",
    " ",
    "\n",
    "\u{feff}",
    "\u{1}",
    "é",
    "\u{10ffff}",
];

/// Members that mutations add to objects.
const MEMBERS: [&str; 12] = [
    "\"date\":\"2026-11-17\",",
    "\"signal\":\"sell\",",
    "\"confidence\":0.25,",
    "\"ticker\":\"AAPL\",",
    "\"period\":\"15d\",",
    "\"regime\":\"bull\",",
    "\"items\":[{\"date\":\"2026-11-20\",\"signal\":\"buy\",\"confidence\":1}],",
    "\"predictions\":[],",
    "\"score\":\"nan\",",
    "\"link\":\"\",",
    "\"crawl_date\":\"2026-11-20\",",
    "\"x/~\":{\"y\":1e400},",
];

/// A source of choices.
struct Choices(u64);

impl Choices {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }

    fn mutate(&mut self, body: &mut Vec<u8>) {
        let at = self.below(body.len() + 1);
        let end = (at + self.below(12)).min(body.len());
        match self.below(14) {
            0 => body.truncate(at),
            1 => body[at..end].fill(self.below(256) as u8),
            2 => drop(body.drain(at..end)),
            3 => drop(body.splice(at..at, TOKENS[self.below(TOKENS.len())].bytes())),
            4 => drop(body.splice(at..end, TOKENS[self.below(TOKENS.len())].bytes())),
            5 => {
                // Copies a range of the body elsewhere: duplicate fields, or fields in another order.
                let length = self.below(80);
                let start = self.below(body.len());
                let stretch = body[start..(start + length).min(body.len())].to_vec();
                drop(body.splice(at..at, stretch));
            }
            6 | 7 => self.add_member(body),
            _ => self.replace_value(body),
        }
    }

    /// Inserts a member at the start of an object.
    fn add_member(&mut self, body: &mut Vec<u8>) {
        let opens: Vec<usize> =
            body.iter().enumerate().filter(|(_, byte)| **byte == b'{').map(|(at, _)| at + 1).collect();
        if let Some(&at) = opens.get(self.below(opens.len())) {
            drop(body.splice(at..at, MEMBERS[self.below(MEMBERS.len())].bytes()));
        }
    }

    /// Replaces the text between two delimiters, so that the body is usually still JSON.
    fn replace_value(&mut self, body: &mut Vec<u8>) {
        let is_mark = |byte: &u8| matches!(byte, b',' | b':' | b'[' | b']' | b'{' | b'}');
        let marks: Vec<usize> = body.iter().enumerate().filter(|(_, byte)| is_mark(byte)).map(|(at, _)| at).collect();
        let chosen = self.below(marks.len());
        if let (Some(&start), Some(&end)) = (marks.get(chosen), marks.get(chosen + 1)) {
            drop(body.splice(start + 1..end, TOKENS[self.below(TOKENS.len())].bytes()));
        }
    }
}

#[test]
fn answers_decode_like_the_oracle() {
    let mut choices = Choices(1);
    for (endpoints, body) in corpus() {
        for round in 0..4_000 / endpoints.len() {
            for endpoint in &endpoints {
                let mut mutated = body.clone().into_bytes();
                (0..choices.below(4).min(round)).for_each(|_| choices.mutate(&mut mutated));
                let data = [&[*endpoint as u8, choices.below(256) as u8], &mutated[..]].concat();
                super::decode(&data);
            }
        }
    }
}

#[test]
fn bodies_are_split_like_the_oracle_splits_them() {
    let mut choices = Choices(2);
    for (_, body) in corpus() {
        for round in 0..2_000 {
            let mut mutated = body.clone().into_bytes();
            (0..choices.below(4).min(round)).for_each(|_| choices.mutate(&mut mutated));
            super::scan(&[&[choices.below(256) as u8], &mutated[..]].concat());
        }
    }
}

#[test]
fn every_entry_becomes_a_row_or_part_of_one_rejected_record() {
    let mut choices = Choices(5);
    for round in 0..6_000 {
        let length = choices.below(round % 600 + 1);
        let data: Vec<u8> = (0..length).map(|_| choices.below(256) as u8).collect();
        super::conserve(&data);
    }
}

#[test]
fn dates_are_parsed_like_chrono_parses_them() {
    let known = [
        "2026-11-20",
        "2026-11-20T09:30:00",
        "2026-11-20T09:30:00.123456Z",
        "2024-02-29 23:59:59-05:00",
        "2026-11-20T00:00:00+0530",
        "2026-11-20t09:30:00z",
        "0001-01-01T00:00:00+05:30",
        "9999-12-31T23:59:00-05:00",
    ];
    let letters = b"0000123456789-:TZtz+. /\xc3";
    let mut choices = Choices(3);
    for _ in 0..30_000 {
        let mut text = known[choices.below(known.len())].as_bytes().to_vec();
        for _ in 0..choices.below(4) {
            let at = choices.below(text.len());
            match choices.below(4) {
                0 => text.insert(at, letters[choices.below(letters.len())]),
                1 => drop(text.remove(at)),
                _ => text[at] = letters[choices.below(letters.len())],
            }
        }
        super::date(&text);
    }
}

#[test]
fn numbers_are_parsed_to_the_nearest_double() {
    let letters = b"00000123456789999.eE-+";
    let mut choices = Choices(4);
    for _ in 0..50_000 {
        let text: Vec<u8> = (0..=choices.below(24)).map(|_| letters[choices.below(letters.len())]).collect();
        super::score(&text);
        let digits: String = text.iter().filter(|byte| byte.is_ascii_digit()).map(|&byte| char::from(byte)).collect();
        let point = choices.below(digits.len());
        super::score(format!("{}.{}", &digits[..point], &digits[point..]).as_bytes());
        super::score(format!("0.{digits}").as_bytes());
    }
}
