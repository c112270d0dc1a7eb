//! Examples of each command, which a test parses.

/// Examples of each command, each with a description.
pub(in crate::cli) const EXAMPLES: &[(&str, &[(&str, &str)])] = &[
    (
        "init",
        &[
            ("init", "answer two questions"),
            ("init mine --base-url https://a.example/v1 --sentiment-base-url https://b.example/v1", "ask nothing"),
        ],
    ),
    ("doctor", &[("doctor mine", "check everything that a run of `mine` needs")]),
    ("run", &[("run", "list the definitions"), ("run demo", "fetch, archive, join and publish")]),
    (
        "build",
        &[
            ("build demo --as-of 2026-03-31", "what was known at the end of March"),
            ("build demo --ticker XOM,CVX --output two.csv", "two tickers in one file"),
        ],
    ),
    (
        "show",
        &[
            ("show demo --ticker XOM --tail 5", "the last rows of one ticker"),
            ("show demo --as-of 2026-03-31 --format csv", "what was known at the end of March"),
        ],
    ),
    ("open", &[("open demo", "the report in your browser")]),
    ("report", &[("report demo", "write reports/demo.html"), ("report demo --output page.html", "to another file")]),
    ("summary", &[("summary demo", "the report, in the terminal")]),
    ("sql", &[("sql demo --as-of 2026-03-31 | duckdb", "the dataset as of March, computed by DuckDB")]),
    (
        "datasets",
        &[
            ("datasets", "every version of every dataset"),
            ("datasets demo", "those of one"),
            ("datasets remove demo/VERSION", "remove one"),
        ],
    ),
    ("datasets remove", &[("datasets remove demo/VERSION", "remove one version")]),
    (
        "diff",
        &[
            ("diff demo", "what changed in the latest version"),
            ("diff demo/VERSION demo", "what changed since a version"),
        ],
    ),
    (
        "cite",
        &[
            ("cite demo", "an entry for BibTeX of the latest version"),
            ("cite demo/20261120T213000Z-7f3a --format croissant", "one version, for Croissant"),
        ],
    ),
    ("runs", &[("runs", "every run in the archive"), ("runs show 20261120T2130", "one run, by prefix")]),
    ("runs show", &[("runs show 20261120T2130", "the run with this prefix")]),
    (
        "verify",
        &[
            ("verify", "recompute every checksum"),
            ("verify --proofs authority.pem", "and say since when each version is proven"),
        ],
    ),
    ("stamp", &[("stamp demo", "have an authority certify that what is known is known now")]),
    (
        "audit",
        &[
            ("audit revisions demo", "what the vendor rewrote"),
            ("audit leak demo", "whether the future reaches the past"),
        ],
    ),
    ("audit leak", &[("audit leak demo", "whether the future reaches the past")]),
    (
        "audit revisions",
        &[
            ("audit revisions demo --output changes.parquet", "a row for each changed value"),
            ("audit revisions demo --from 2026-03-31 --fail-above 0.5%", "fail if more was rewritten since"),
        ],
    ),
    ("audit quality", &[("audit quality demo", "gaps, stale series, duplicates, unusual values")]),
    (
        "audit skill",
        &[
            ("audit skill demo", "the demo, against its own prices"),
            ("audit skill nightly --prices closes.parquet", "as published, and as it stands today"),
        ],
    ),
    ("audit sources", &[("audit sources", "whether the operations agree")]),
    (
        "archive",
        &[
            ("archive compact", "pack all runs into one folder"),
            ("archive prune --dry-run", "list packed runs to remove"),
            ("archive forget 20261120T213000Z-7f3a --reason \"wrong clock\"", "take a bad run back"),
            ("archive repair --dry-run", "list what is damaged"),
            ("archive migrate", "keep an archive of an older version"),
        ],
    ),
    ("archive compact", &[("archive compact --keep 30", "leave the newest 30 runs as they are")]),
    ("archive prune", &[("archive prune --dry-run", "list what would be removed")]),
    (
        "archive forget",
        &[("archive forget 20261120T213000Z-7f3a --reason \"wrong clock\"", "leave this run out from now on")],
    ),
    (
        "archive repair",
        &[
            ("archive repair --dry-run", "list what is damaged, and what would be done"),
            ("archive repair", "move it out of the way"),
        ],
    ),
    (
        "archive migrate",
        &[
            ("archive migrate --dry-run", "list the old runs, and their services"),
            ("archive migrate", "migrate them, and keep the old folders"),
            ("archive migrate --remove-old", "remove the old folders"),
        ],
    ),
    (
        "import",
        &[
            (
                "import demo energy.json --request \"signals-history-all?sector=energy\" --observed-at 2025-03-31T21:30:00Z",
                "one answer that was saved in March",
            ),
            (
                "import demo XOM-2025-03-31.json --request \"news_articles/{ticker}\" --names \"{ticker}-{observed_at}.json\"",
                "ticker and day from the names of the files",
            ),
        ],
    ),
    ("prune", &[("prune --dry-run", "list what would be removed, with sizes")]),
    ("check", &[("check demo", "every problem of a definition, with its place")]),
    (
        "plan",
        &[
            ("plan demo", "how many requests, and which columns, before anything is fetched"),
            ("plan demo --requests", "every request"),
        ],
    ),
    ("schema", &[("schema", "for an editor that checks TOML")]),
    (
        "schedule",
        &[
            ("schedule --listen 127.0.0.1:9464", "run definitions at their times, and answer /metrics"),
            ("schedule --once", "run due definitions and exit"),
        ],
    ),
    ("schedule print", &[("schedule print --for systemd", "a service to install")]),
    ("status", &[("status", "how each definition is doing"), ("status demo --json", "one of them, for a program")]),
    (
        "store",
        &[("store status", "compare this machine with the store"), ("store push", "send what only this machine has")],
    ),
    ("store status", &[("store status", "compare this machine with the store")]),
    ("store push", &[("store push", "send what only this machine has")]),
    (
        "store pull",
        &[
            ("store pull", "the runs, and the latest version of every dataset"),
            ("store pull demo", "the same for one dataset"),
            ("store pull demo/20261120T213000Z-7f3a", "one older version"),
        ],
    ),
    (
        "store verify",
        &[
            ("store verify", "read everything in the store"),
            ("store verify --sizes", "compare sizes alone"),
            ("store verify --since 20261120T213000Z-7f3a", "read what is new"),
        ],
    ),
    (
        "store prune",
        &[
            ("store prune --dry-run", "list what newer versions and packs have replaced"),
            ("store prune", "remove it; no row of the archive is lost"),
        ],
    ),
    (
        "store repair",
        &[
            ("store repair --dry-run", "list what is damaged, and what would be done"),
            ("store repair", "mend the store and this machine from one another"),
        ],
    ),
    ("store migrate", &[("store migrate --dry-run", "list the old runs in the store, and their services")]),
    (
        "serve",
        &[
            ("serve --demo", "the demo service on a free port"),
            ("serve --demo --today 2026-03-31", "in March"),
            ("serve --archive --as-of 2026-03-31", "what the archive knew at the end of March"),
        ],
    ),
    ("completions", &[("completions bash", "completions for bash")]),
    ("man", &[("man", "bellwether(1)"), ("man run", "bellwether-run(1)")]),
];
