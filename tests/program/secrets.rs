//! The key is never shown, whatever fails and whatever is logged.

use std::fs;

use std::path::{Path, PathBuf};

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::DataType;

use crate::help::commands;
use crate::support::program::{Outcome, Place};
use crate::support::random::Random;
use crate::support::rows::{read, sealed_run};
use crate::support::scripted::{Scripted, Step, json, reply};

/// With a character that URLs may escape in two ways.
const CANARY: &str = "S3CRET canary/ü&+";

/// The encodings in which it, or an identifying part of it, may appear.
const SPELLINGS: [&str; 6] =
    ["S3CRET", CANARY, "S3CRET+canary%2F%C3%BC%26%2B", "S3CRET%20canary%2F%C3%BC%26%2B", "canary%2F", "canary/ü"];

/// The reaction of a service to a target, which contains the key.
type Script = fn(&str) -> Vec<Step>;

fn page(request: &str) -> Vec<Step> {
    reply("200 OK", "", format!("<html>you requested {request}, with {CANARY}</html>").as_bytes())
}

fn refusal(request: &str) -> Vec<Step> {
    let problem = format!("{{\"loc\":[\"query\",\"{request}\"],\"msg\":\"{CANARY} {request}\",\"type\":\"x\"}}");
    json("422 Unprocessable Entity", &format!("{{\"detail\":[{problem}]}}"))
}

fn reject(request: &str) -> Vec<Step> {
    json("200 OK", &format!("{{\"{request}\":{{\"ticker\":\"{CANARY}\"}}}}"))
}

fn redirect(request: &str) -> Vec<Step> {
    reply("302 Found", &format!("Location: {request}\r\n"), request.as_bytes())
}

const SCRIPTS: [(&str, i32, Script); 8] = [
    ("a page that shows its address", 1, page),
    ("a refusal that repeats it", 1, refusal),
    ("a redirect with it", 1, redirect),
    ("a record that holds it", 4, reject),
    ("a wrong key", 1, |request| json("401 Unauthorized", request)),
    ("a busy service", 75, |request| json("503 Service Unavailable", request)),
    ("a reset", 75, |_| vec![Step::Reset]),
    ("an answer that is none", 75, |request| vec![Step::Send(request.as_bytes().to_vec())]),
];

#[test]
fn a_failing_run_never_prints_or_writes_the_key_even_at_trace_level() {
    for (name, code, script) in SCRIPTS {
        for form in ["text", "json"] {
            let place = Place::new();
            let service = Scripted::start(move |request| script(&request.target));
            place.define(
                "it",
                &format!("[source]\n{}patience = \"1s\"\n[signals]\nsectors = [\"energy\"]\n", service.source()),
            );
            let mut command = place.command(["run", "it", "--log-level", "trace", "--log", form]);
            let outcome = Outcome::of(command.env("BELLWETHER_API_KEY", CANARY)).failed_with(code);
            assert!(service.targets()[0].contains("S3CRET"), "the key was sent, or there is nothing to look for");
            assert!(outcome.stderr.len() > 1000, "{name}: a trace is long: {}", outcome.stderr);
            let printed = [
                ("stdout".to_owned(), outcome.stdout.into_bytes()),
                ("stderr".to_owned(), outcome.stderr.into_bytes()),
            ];
            let written = place.files().into_iter().filter(|file| !place.path().join(file).is_symlink()).map(|file| {
                let bytes = fs::read(place.path().join(&file)).expect("a file that can be read");
                (file.display().to_string(), bytes)
            });
            for (source, bytes) in printed.into_iter().chain(written) {
                let text = String::from_utf8_lossy(&bytes);
                for spelling in SPELLINGS {
                    assert!(!text.contains(spelling), "{name}: `{spelling}` is in {source}: {text}");
                }
            }
        }
    }
}

/// A key that starts and ends with unique words, with characters between them that encodings escape.
fn key_of(random: &mut Random) -> String {
    let letters: Vec<char> = "/\"\\'<>&%+=: -_ünéß✓🔑2Fu0".chars().collect();
    let middle: String = (0..random.between(1, 12)).map(|_| random.pick(&letters)).collect();
    format!("S3CRET{middle}canary")
}

/// A text as the inside of a JSON string, each letter escaped or not.
fn json_of(random: &mut Random, text: &str) -> String {
    let mut written = String::new();
    for letter in text.chars() {
        let units = letter.encode_utf16(&mut [0; 2]).to_vec();
        match random.below(6) {
            0 => units.iter().for_each(|unit| written += &format!("\\u{unit:04x}")),
            1 => units.iter().for_each(|unit| written += &format!("\\u{unit:04X}")),
            _ if matches!(letter, '"' | '\\') || (letter == '/' && random.one_in(2)) => {
                written.extend(['\\', letter]);
            }
            _ => written.push(letter),
        }
    }
    written
}

/// A text as part of a URL, with hexadecimal digits in either case and spaces in either form.
fn percents_of(random: &mut Random, text: &str) -> String {
    let mut written = String::new();
    for byte in text.bytes() {
        match byte {
            b' ' if random.one_in(2) => written.push('+'),
            _ if byte.is_ascii_alphanumeric() && !random.one_in(6) => written.push(char::from(byte)),
            _ if random.one_in(2) => written += &format!("%{byte:02x}"),
            _ => written += &format!("%{byte:02X}"),
        }
    }
    written
}

/// A text as part of a page, with letters as their numbers.
fn html_of(random: &mut Random, text: &str) -> String {
    let mut written = String::new();
    for letter in text.chars() {
        match letter {
            '&' => written += "&amp;",
            '<' => written += "&lt;",
            '"' => written += "&quot;",
            _ if letter.is_ascii_alphanumeric() && !random.one_in(6) => written.push(letter),
            _ if random.one_in(2) => written += &format!("&#{};", u32::from(letter)),
            _ => written += &format!("&#x{:x};", u32::from(letter)),
        }
    }
    written
}

/// The inside of a JSON string in which a service echoes a key.
fn echo_of(random: &mut Random, key: &str) -> String {
    match random.below(4) {
        0 => json_of(random, key),
        1 => percents_of(random, key),
        2 => html_of(random, key),
        _ => format!("https://host/a?api_key={}&x=1", percents_of(random, key)),
    }
}

/// All text in a file: the column values of a Parquet file, or else its bytes.
fn text_in(path: &Path) -> String {
    if path.extension().is_none_or(|ending| ending != "parquet") {
        return String::from_utf8_lossy(&fs::read(path).expect("a file that can be read")).into_owned();
    }
    let rows = read(path);
    let texts = rows.columns().iter().filter_map(|column| cast(column, &DataType::Utf8).ok());
    texts.flat_map(|texts| texts.as_string::<i32>().iter().flatten().map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn a_key_echoed_by_the_service_is_never_kept_as_it_is_or_escaped() {
    for seed in 0..8 {
        let mut random = Random::of(seed);
        let key = key_of(&mut random);
        let mut echo = || echo_of(&mut random, &key);
        let entry = format!(r#"{{"date":"2026-11-20","signal":"buy","confidence":0.5,"{}":"{}"}}"#, echo(), echo());
        let odd = format!(r#"{{"date":"2026-11-19","signal":"{}","confidence":0.5}}"#, echo());
        let of_echo = format!(r#""{}":{{"ticker":"{}"}}"#, echo(), echo());
        let head = r#""XOM":{"ticker":"XOM","regime":"neutral","period":"15d""#;
        let histories = format!(r#"{{{head},"predictions":[{entry},{odd}]}},{of_echo}}}"#);
        let article = format!(
            r#"{{"date":"2026-11-19","title":"a {} b","score":0.5,"link":"{}","{}":"{}"}}"#,
            echo(),
            echo(),
            echo(),
            echo()
        );
        let articles =
            format!(r#"[{article},{{"date":"{}","title":"{}"}},{}]"#, echo(), echo(), "\"{}\"".replace("{}", &echo()));
        let service = Scripted::start(move |request| match request.target.starts_with("/a/") {
            true => json("200 OK", &histories),
            false => json("200 OK", &articles),
        });
        let place = Place::new();
        let rest = "[signals]\nsectors = [\"energy\"]\n[rejects]\nmax_share = 0.9\nkeep_extra = true\n";
        place.define("it", &format!("[source]\n{}{rest}", service.source()));
        let outcome = Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", &key)).expect_success();
        let shown = place.run(["audit", "quality", "--all"]).expect_success();
        let printed = [outcome.stdout, outcome.stderr, shown.stdout].map(|text| ("what is printed".to_owned(), text));
        let is_ours = |file: &PathBuf| !file.starts_with("pipelines") && !place.path().join(file).is_symlink();
        let files = place.files().into_iter().filter(is_ours);
        let written = files.map(|file| (file.display().to_string(), text_in(&place.path().join(&file))));
        for (source, text) in printed.into_iter().chain(written) {
            let lower = text.to_lowercase();
            // Words of the key, with the first letter of each word escaped.
            for part in ["s3cret", "canary", "\\u0053", "\\u0063", "%53", "%63", "&#83;", "&#99;", "&#x53;", "&#x63;"] {
                assert!(!lower.contains(part), "{key}: `{part}` is in {source}: {text}");
            }
        }
        let titles = read(&sealed_run(&place).join("articles.parquet"));
        let title = titles.column_by_name("title").expect("a title").as_string::<i32>().value(0).to_owned();
        let is_title = title.starts_with("a ") && title.contains("********") && title.ends_with(" b");
        assert!(is_title, "only the key is masked: {title}");
    }
}

/// Every option of every command: the words of the command, and the option.
fn options() -> Vec<(Vec<String>, String)> {
    let all = commands().into_iter().filter(|(words, _)| !words.is_empty());
    all.flat_map(|(words, command)| {
        let options = command.get_arguments().filter_map(|argument| argument.get_long());
        options.map(|option| (words.clone(), format!("--{option}"))).collect::<Vec<_>>()
    })
    .collect()
}

/// Values that hold a secret, for an option that takes an address: most are refused, and the parser repeats them.
const ADDRESSES: [&str; 8] = [
    "https://vendor.example/v1?api_key=S3CRET-canary",
    "https://me:S3CRET-canary@vendor.example/v1",
    "https://S3CRET-canary@vendor.example/v1",
    "ftp://me:S3CRET-canary@vendor.example",
    "s3://me:S3CRET-canary@bucket",
    "https://vendor.example:port/#S3CRET-canary",
    "vendor.example?S3CRET-canary",
    "me:S3CRET-canary@vendor.example",
];

#[test]
fn no_option_repeats_the_secret_in_an_address() {
    let place = Place::new();
    let options = options();
    let known = ["--base-url", "--sentiment-base-url", "--store", "--listen", "--listen-host", "--engine"];
    for option in known {
        assert!(options.iter().any(|(_, name)| name == option), "{option}: {options:?}");
    }
    for (number, (command, option)) in options.iter().enumerate() {
        let is_address = known.contains(&option.as_str());
        for (at, address) in ADDRESSES.iter().enumerate() {
            // Every option gets one of them, those that take an address get all.
            if !is_address && at != number % ADDRESSES.len() {
                continue;
            }
            let mut words = command.clone();
            words.push(format!("{option}={address}"));
            if words[0] == "schedule" && !option.starts_with("--listen") {
                // It would go on.
                words.push("--once".to_owned());
            }
            let outcome = place.run(&words);
            assert!(!outcome.stderr.contains("S3CRET"), "{words:?}: {}", outcome.stderr);
            // A folder may have any name.
            assert!(!is_address || !outcome.stdout.contains("S3CRET"), "{words:?}: {}", outcome.stdout);
            assert!(!is_address || outcome.code == Some(2), "{words:?}: {outcome:?}");
        }
    }
}

#[test]
fn no_variable_for_an_address_is_repeated_with_its_secret() {
    let place = Place::new();
    for address in ADDRESSES {
        for (variable, command) in [("BELLWETHER_LISTEN", "schedule"), ("BELLWETHER_STORE", "run")] {
            place.define("demo", "source.service = \"demo\"\nsignals.sectors = [\"energy\"]\n");
            let words = if command == "run" { vec!["run", "demo"] } else { vec!["schedule"] };
            let outcome = Outcome::of(place.command(words).env(variable, address)).failed_with(2);
            let printed = format!("{}{}", outcome.stdout, outcome.stderr);
            assert!(!printed.contains("S3CRET"), "{variable}={address}: {printed}");
        }
    }
}
