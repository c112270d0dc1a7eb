//! Building blocks of SQL text.

/// The line width at which lists wrap.
const WIDTH: usize = 110;

/// A string literal.
pub(super) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Lines indented by one more step.
pub(super) fn indent(lines: &str) -> String {
    lines.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

/// Values separated by commas, wrapped to lines.
pub(super) fn wrap(values: impl IntoIterator<Item = String>) -> String {
    let (mut text, mut line) = (String::new(), 0);
    for value in values {
        if !text.is_empty() {
            let is_full = line + value.len() > WIDTH;
            text.push_str(if is_full { ",\n" } else { ", " });
            line = if is_full { 0 } else { line + 2 };
        }
        line += value.len();
        text.push_str(&value);
    }
    text
}

/// `column in (values)`, on several lines if needed.
pub(super) fn one_of(column: &str, values: impl IntoIterator<Item = String>) -> String {
    let values = wrap(values);
    if values.is_empty() {
        "false".to_owned()
    } else if values.contains('\n') {
        format!("{column} in (\n{}\n)", indent(&values))
    } else {
        format!("{column} in ({values})")
    }
}

/// A named relation of one column.
pub(super) fn rows(name: &str, column: &str, values: impl IntoIterator<Item = String>) -> String {
    let values = wrap(values.into_iter().map(|value| format!("({value})")));
    if values.contains('\n') {
        format!("(values\n{}\n) as {name}({column})", indent(&values))
    } else {
        format!("(values {values}) as {name}({column})")
    }
}
