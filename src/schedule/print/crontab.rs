//! A line for a crontab, which runs what is due.

use bellwether::text::escape::shell;

use super::settings::Action;
use super::{EXIT_CODES, Setup};

pub(super) fn line(setup: &Setup) -> String {
    let command: Vec<String> = setup.words(Action::Once).iter().map(|word| shell(word)).collect();
    format!(
        "\
# Install with `crontab -e`. Every five minutes, what is due is run; nothing is printed if nothing is due, and cron mails
# the rest. The time zones are those of the definitions, whatever the time zone of cron:
{listed}{EXIT_CODES}{left_out}\
# Put the API key into a file that only you can read, and name it here.
BELLWETHER_API_KEY_FILE={key}
*/5 * * * * {command}
",
        listed = setup.schedule_comments(),
        left_out = setup.left_out(Action::Once),
        key = setup.key_file().display(),
        // A percent sign is a line break to cron.
        command = command.join(" ").replace('%', "\\%"),
    )
}
