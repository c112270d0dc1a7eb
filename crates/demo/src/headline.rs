//! Realistic headlines.
//!
//! They contain what breaks careless readers: commas, double quotes, non-ASCII letters and symbols.

use crate::draw::{Draw, purpose};

const TEMPLATE: u64 = purpose("template");
const PERCENT: u64 = purpose("percent");
const MONEY: u64 = purpose("money");
const ANALYST: u64 = purpose("analyst");
const HOUSE: u64 = purpose("house");
const PLACE: u64 = purpose("place");

const GOOD: [&str; 12] = [
    "{company} beats expectations, raises full-year outlook by {percent} %",
    "{company} shares jump {percent} % after record quarter",
    "“The best is yet to come”: {analyst} turns bullish on {company}",
    "{house} lifts its target for {company}, citing strong demand in {place}",
    "{company} wins €{money} million order from {place}",
    "{company} — margins widen for the third quarter in a row",
    "{company}’s new plant near {place} opens ahead of schedule",
    "Why {analyst} calls {company} \"the cheapest quality stock in the sector\"",
    "{company} announces ${money} million buyback, higher dividend",
    "Regulators clear {company}’s €{money} million acquisition",
    "{house}: {company} is a “top pick” for the year ahead",
    "Insiders at {company} are buying, filings show",
];

const BAD: [&str; 12] = [
    "{company} misses estimates, cuts outlook by {percent} %",
    "{company} slides {percent} % as costs rise faster than sales",
    "\"We were too optimistic,\" says {company} after weak quarter",
    "{house} downgrades {company}, warns of slowing orders from {place}",
    "{company} to take ${money} million charge, close site near {place}",
    "{company} — a growth story that ran out of growth?",
    "{company}’s finance chief leaves after only nine months",
    "{analyst} doubts that {company} can keep its dividend",
    "Court in {place} fines {company} €{money} million",
    "Strike at {company} enters second week, talks stall",
    "{company} recalls products sold in {place}, shares fall {percent} %",
    "Short sellers raise bets against {company} by {percent} %",
];

const PLAIN: [&str; 12] = [
    "{company} to report results on Thursday: what to watch",
    "{company} names new head of operations in {place}",
    "Five questions for {company}, answered by {analyst}",
    "{company} keeps its outlook, says demand in {place} is “mixed, but stable”",
    "{house} starts coverage of {company} with a neutral rating",
    "{company} refinances €{money} million of debt",
    "{company} trades flat, volume {percent} % below average",
    "{company} and the café next door — a visit to {place}",
    "What {company}’s annual report says, and what it leaves out",
    "{company} moves its European office to {place}",
    "Options traders see a {percent} % move in {company} this month",
    "{company} says it is \"reviewing\" its stake in a {place} joint venture",
];

const ANALYSTS: [&str; 8] = [
    "Zoé Lefèvre",
    "Jürgen Groß",
    "Małgorzata Łukasik",
    "Ana Peña",
    "Tom Ashworth",
    "Søren Ørsted",
    "Priya Raman",
    "Siobhán O’Neill",
];

const HOUSES: [&str; 6] = [
    "Crédit Montagne",
    "Harbour & Finch",
    "Nordlys Research",
    "Bluestone, Hale & Co.",
    "Banco Peñalta",
    "Ostrów Capital",
];

const PLACES: [&str; 10] =
    ["Texas", "São Paulo", "Zürich", "Québec", "Kraków", "Singapore", "Málaga", "Ohio", "Düsseldorf", "Malmö"];

/// The headline of an article about a company, in the tone of a score from -1 to 1.
pub(crate) fn headline(company: &str, tone: f64, draw: Draw) -> String {
    let templates = match tone {
        tone if tone > 0.15 => &GOOD,
        tone if tone < -0.15 => &BAD,
        _ => &PLAIN,
    };
    let mut headline = String::with_capacity(96);
    let mut rest = draw.at(TEMPLATE).choose(templates);
    while let Some((text, (slot, after))) =
        rest.split_once('{').and_then(|(text, slot)| Some((text, slot.split_once('}')?)))
    {
        headline.push_str(text);
        match slot {
            "company" => headline.push_str(company),
            "analyst" => headline.push_str(draw.at(ANALYST).choose(&ANALYSTS)),
            "house" => headline.push_str(draw.at(HOUSE).choose(&HOUSES)),
            "place" => headline.push_str(draw.at(PLACE).choose(&PLACES)),
            "percent" => headline.push_str(&(2 + draw.at(PERCENT).below(17)).to_string()),
            _ => headline.push_str(&(5 * (2 + draw.at(MONEY).below(190))).to_string()),
        }
        rest = after;
    }
    headline + rest
}

#[cfg(test)]
mod tests {
    use super::{BAD, GOOD, PLAIN, headline};
    use crate::draw::Draw;

    #[test]
    fn every_template_names_the_company_and_uses_only_filled_slots() {
        let slots = ["company", "analyst", "house", "place", "percent", "money"];
        for template in [GOOD, BAD, PLAIN].concat() {
            assert!(template.contains("{company}"), "{template}");
            for slot in template.split('{').skip(1) {
                assert!(slot.split_once('}').is_some_and(|(name, _)| slots.contains(&name)), "{template}");
            }
        }
    }

    #[test]
    fn headlines_vary_and_contain_commas_quotes_and_non_ascii_letters() {
        let titles: Vec<String> = (0..600)
            .map(|place| headline("Estée Lauder", f64::from(place % 3) - 1.0, Draw::from_seed(5).at(place as u64)))
            .collect();
        let distinct: std::collections::BTreeSet<_> = titles.iter().collect();
        assert!(distinct.len() > 250, "{}", distinct.len());
        for sign in [",", "\"", "—", "’", "€", "ü"] {
            assert!(titles.iter().any(|title| title.contains(sign)), "{sign}");
        }
        assert!(titles.iter().all(|title| title.contains("Estée Lauder") && !title.contains(['{', '}'])));
    }
}
