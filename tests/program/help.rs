//! Help and manual pages.

use std::fs;

use crate::support::program::Place;

#[test]
fn manual_pages_have_the_commands_of_the_help_and_its_tables() {
    let place = Place::new();
    let page = place.run(["man"]).expect_success().stdout;
    let help = place.run(["--help"]).expect_success().stdout;
    for command in ["init", "doctor", "run", "datasets", "open", "audit", "completions"] {
        assert!(page.contains(&format!("bellwether\\-{command}(1)")) && help.contains(command), "{command}");
    }
    assert!(!page.contains("help(1)"), "a page that does not exist");
    let heading = page.lines().find(|line| line.starts_with(".TH")).unwrap();
    let version = concat!("\"bellwether ", env!("CARGO_PKG_VERSION"), "\"");
    assert!(heading.starts_with(".TH bellwether 1 ") && heading.contains(version), "{heading}");
    for row in ["\\fBBELLWETHER_LOG_LEVEL\\fR\n\\&the level of log messages", "\\fB\\&75\\fR\n\\&temporary failure"] {
        assert!(page.replace("\\fB\\&BELL", "\\fBBELL").contains(&format!(".TP\n{row}")), "{row}: {page}");
    }
    // A page has several names.
    let leak = place.run(["man", "audit", "leak"]).expect_success().stdout;
    assert!(leak.starts_with(".ie") && leak.contains(".TH bellwether-audit-leak 1 "), "{leak}");
    for name in ["audit-leak", "bellwether-audit-leak"] {
        assert_eq!(place.run(["man", name]).expect_success().stdout, leak);
    }
    place.run(["man", "nothing"]).failed_with(2);
}

#[test]
fn a_summary_in_the_list_of_commands_is_wrapped_under_itself() {
    let place = Place::new();
    let help = place.run(["--help"]).expect_success().stdout;
    let (list, _) = help.split_once("\nOptions:").unwrap();
    let listed: Vec<&str> = list.lines().filter_map(|line| line.strip_prefix("  ")).collect();
    let names = listed.iter().filter(|line| !line.starts_with(' ')).map(|line| line.split(' ').next().unwrap());
    let commands = place.run(["man"]).expect_success().stdout;
    for name in names {
        assert!(commands.contains(&format!("bellwether\\-{name}(1)")), "{name} is no command: {help}");
    }
    assert!(listed.iter().any(|line| line.starts_with("             ")), "a summary that is wrapped: {help}");
    // What every command has comes last.
    for command in ["build", "show", "audit revisions", "store pull"] {
        let help = place.run(command.split(' ').chain(["--help"])).expect_success().stdout;
        let headings: Vec<&str> = help.lines().filter(|line| line.ends_with(':') && !line.starts_with(' ')).collect();
        let options: Vec<&&str> = headings.iter().filter(|line| !line.starts_with("Ex")).collect();
        assert_eq!(options.last(), Some(&&"Global options:"), "{command}: {headings:?}");
        let (_, global) = help.split_once("\nGlobal options:\n").unwrap();
        assert!(global.contains("--directory") && global.contains("--help"), "{global}");
    }
}

#[test]
fn help_that_cannot_be_printed_is_a_failure() {
    let place = Place::new();
    for arguments in [&["--help"][..], &["run", "--help"], &["--version"], &["status"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let code = place.command(arguments).stdout(full).status().unwrap().code();
        assert_eq!(code, Some(1), "{arguments:?}");
    }
}
