//! A launchd agent that runs the scheduler.

use super::Setup;
use super::settings::Action;

pub(super) fn agent(setup: &Setup) -> String {
    let words: String =
        setup.words(Action::Keep).iter().map(|word| format!("        <string>{}</string>\n", escape(word))).collect();
    let listed = comment(&setup.schedule_comments());
    let left_out = comment(&setup.left_out(Action::Keep));
    let log = setup.data.join("schedule.log");
    format!(
        "\
<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<!--
  Install as ~/Library/LaunchAgents/bellwether.schedule.plist, then:
    launchctl bootstrap gui/$UID ~/Library/LaunchAgents/bellwether.schedule.plist
  Put the API key into the file that BELLWETHER_API_KEY_FILE names, readable by you alone.
  Definitions, each in its own time zone; what is missed while the machine sleeps is run when it wakes:
{listed}  Exit codes of a run, in the log: 0 published; 75 a temporary failure, tried again; 4 a check of the data failed;
  2 an invalid definition; 130 interrupted, the next start resumes; 1 any other failure.
{left_out}-->
<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">
<plist version=\"1.0\">
<dict>
    <key>Label</key>
    <string>bellwether.schedule</string>
    <key>ProgramArguments</key>
    <array>
{words}    </array>
    <key>WorkingDirectory</key>
    <string>{root}</string>
    <key>EnvironmentVariables</key>
    <dict>
        <key>BELLWETHER_API_KEY_FILE</key>
        <string>{key}</string>
    </dict>
    <key>RunAtLoad</key>
    <true/>
    <key>KeepAlive</key>
    <true/>
    <key>ThrottleInterval</key>
    <integer>30</integer>
    <key>ExitTimeOut</key>
    <integer>120</integer>
    <key>StandardErrorPath</key>
    <string>{log}</string>
</dict>
</plist>
",
        root = escape(&setup.root.to_string_lossy()),
        key = escape(&setup.key_file().to_string_lossy()),
        log = escape(&log.to_string_lossy()),
    )
}

/// Lines of a comment, which has no two hyphens in a row.
fn comment(lines: &str) -> String {
    let mut text = String::new();
    for line in lines.lines() {
        text.push_str(&line.replacen('#', " ", 1));
        text.push('\n');
    }
    while text.contains("--") {
        text = text.replace("--", "- -");
    }
    text
}

/// A text between tags.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
