//! A line for a crontab, which runs what is due.

use super::{EXIT_CODES, Setup, shell};

pub(super) fn line(setup: &Setup) -> String {
    let command: Vec<String> = setup.words(&["schedule", "--once"]).iter().map(|word| shell(word)).collect();
    format!(
        "\
# Install with `crontab -e`. Every five minutes, what is due is run; nothing is printed if nothing is due, and cron mails
# the rest. The time zones are those of the definitions, whatever the time zone of cron:
{listed}{EXIT_CODES}\
# Put the API key into a file that only you can read, and name it here.
BELLWETHER_API_KEY_FILE={key}
*/5 * * * * {command}
",
        listed = setup.listed(),
        key = setup.root.join("api-key").display(),
        // A percent sign is a line break to cron.
        command = command.join(" ").replace('%', "\\%"),
    )
}
