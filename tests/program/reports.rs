//! Reports: that their numbers are those of the archive, that nothing of the vendor's runs in them, and where they are.

use std::fs;

use bellwether::archive::Archive;
use bellwether::time::to_record;

use crate::support::program::{DemoService, Outcome, Place};
use crate::support::python;
use crate::support::scripted::{Scripted, json};

const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "demo");

/// What two sectors said on some days, with what the vendor rewrote between them.
fn run_on<const N: usize>(days: [&str; N]) -> Place {
    let place = Place::new();
    for today in days {
        let service = DemoService::start(&place, &["--today", today]);
        let rest = "[signals]\nsectors = [\"energy\", \"utilities\"]\nperiods = [\"5d\", \"1m\"]\n";
        place.define("it", &format!("description = \"It\"\n[source]\n{}{rest}", service.source));
        Outcome::of(place.command(["run", "it", "-q"]).envs([KEY])).succeeded();
    }
    place
}

#[test]
fn a_report_says_what_the_archive_and_the_dataset_say() {
    let place = run_on(["2026-08-03", "2026-11-18", "2026-11-20"]);
    let summary = place.run(["summary", "it", "--width", "100"]).succeeded().stdout;
    assert!(summary.lines().all(|line| line.chars().count() <= 100), "{summary}");
    fs::write(place.file("summary.txt"), &summary).expect("a file");
    python::check("check_report.py", [place.path().as_os_str(), "it".as_ref()]);
    python::check("check_page.py", [place.file("output/datasets/it/latest/report.html")]);
    let narrow = place.run(["summary", "--width", "20"]).succeeded().stdout;
    assert!(narrow.lines().all(|line| line.chars().count() <= 50), "{narrow}");

    // The same again from the archive alone, by name and as the one that was built last, but for how long it took.
    let told = |arguments: &[&str]| {
        let page = place.run(arguments).succeeded().stdout;
        page.split("id=\"timings\"").next().expect("it has a beginning").to_owned()
    };
    let beside = fs::read_to_string(place.file("output/datasets/it/latest/report.html")).expect("a report");
    let by_name = told(&["report", "it", "--file", "-"]);
    assert!(beside.starts_with(&by_name), "it is the same page");
    assert_eq!(told(&["report", "--file", "-"]), by_name);
    // As it was known before the vendor rewrote anything.
    let archive = Archive::open(&place.file("output/archive")).expect("an archive");
    let first = to_record(archive.runs()[0].seal().sealed_at);
    let earlier = told(&["report", "it", "--file", "-", "--as-of", &first]);
    assert!(earlier.contains("There is one run: nothing can have changed yet"));
    assert!(by_name.contains("blake3:") && !earlier.contains("blake3:"), "it is of no version");
    let path = place.run(["report", "it"]).succeeded().stdout;
    assert_eq!(path, "report    output/reports/it.html\n");
    assert!(fs::read_to_string(place.file("output/reports/it.html")).expect("a report").starts_with(&by_name));
    let unknown = place.run(["report", "other"]).failed_with(1).stderr;
    assert!(unknown.starts_with("error: no dataset `other` in `output/datasets`\nhint: publish it first"), "{unknown}");
}

#[test]
fn a_report_lies_beside_a_version_and_is_none_of_its_files() {
    let place = run_on(["2026-11-20"]);
    let version = place.file("output/datasets/it/latest");
    let record = fs::read_to_string(version.join("dataset.json")).expect("a record");
    assert!(version.join("report.html").exists() && !record.contains("report.html"), "{record}");
    fs::write(version.join("report.html"), "somebody wrote here").expect("a file");
    place.run(["verify"]).succeeded();
    // A version goes with its report, and a wide dataset has one too.
    for layout in ["", "[output]\nlayout = \"wide\"\nkeep = 1\n"] {
        let text = fs::read_to_string(place.file("pipelines/it.toml")).expect("a definition");
        place.define("it", &format!("{text}{layout}"));
        place.run(["build", "it", "-q"]).succeeded();
        let page = fs::read_to_string(version.join("report.html")).expect("a report");
        assert!(page.contains("id=\"plot-coverage\""));
    }
    let folders = fs::read_dir(place.file("output/datasets/it")).expect("a folder").count();
    assert_eq!(folders, 2, "one version, and the link to it");
}

/// A service whose every text would be markup, were it taken for it.
fn hostile(target: &str) -> String {
    const WORD: &str = r#"</script></style></td><script>window.hostileScript=1</script><img src=https://evil.example/x onerror='hostileImage=1'>\" onfocus=\"hostileFocus=1"#;
    if let Some(rest) = target.strip_prefix("/b/news_articles/") {
        let links = [
            "javascript:hostileLink()",
            "https://news.example/a?b=c&d=\\\"e",
            "data:text/html,<script>1</script>",
            "//x",
        ];
        let articles = links.iter().enumerate().map(|(number, link)| {
            let (day, score) = (number + 2, number as f64 / 4.0 - 0.5);
            let title = format!("{WORD} {rest} \\u202e{}", "long".repeat(60));
            format!(r#"{{"date":"2026-10-{day:02}","title":"{title}","score":{score},"link":"{link}"}}"#)
        });
        return format!("[{}]", articles.collect::<Vec<_>>().join(","));
    }
    let entries = (1..28).map(|day| {
        let signal = if day % 9 == 0 { WORD } else { ["buy", "sell"][day % 2] };
        format!(
            r#"{{"date":"2026-10-{day:02}T00:00:00","signal":"{signal}","confidence":0.{day:02},"{WORD}":"{WORD}"}}"#
        )
    });
    let entries = entries.collect::<Vec<_>>().join(",");
    let series = |name: &str| {
        format!(r#""{name}":{{"ticker":"{name}","regime":"bear","period":"5d","predictions":[{entries}]}}"#)
    };
    format!("{{{},{},{}}}", series("BRK.B"), series("ABCDEFGHIJKLMNOP"), series(WORD))
}

#[test]
fn nothing_that_a_vendor_writes_runs_in_a_report_or_breaks_out_of_its_place() {
    let service = Scripted::start(|asked| json("200 OK", &hostile(&asked.target)));
    let place = Place::new();
    let definition = format!(
        "description = \"<script>hostileDescription=1</script> & {}\"\n[source]\n{}[signals]\nsectors = [\"x'\\\"><b>\"]\n\
         periods = [\"5d\"]\nregimes = [\"bear\"]\n[rejects]\nmax_share = 0.9\n",
        "description".repeat(30),
        service.source()
    );
    place.define("hostile", &definition);
    Outcome::of(place.command(["run", "hostile", "-q"]).envs([KEY])).succeeded();
    let page = place.file("output/datasets/hostile/latest/report.html");
    let shown = "<script>window.hostileScript=1</script>";
    python::check(
        "check_page.py",
        [page.as_os_str(), shown.as_ref(), "<script>hostileDescription=1</script>".as_ref()],
    );
    let summary = place.run(["summary", "hostile"]).succeeded().stdout;
    assert!(!summary.chars().any(|character| character.is_control() && character != '\n'), "{summary:?}");
}
