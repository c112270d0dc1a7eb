//! Gives fields the names of the interface, where a service has its own.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// JSON whose fields have other names, at any depth. Text that is not JSON stays as wrong as it is.
pub(super) fn fields<'t>(text: &'t str, names: &BTreeMap<String, String>) -> Cow<'t, str> {
    let bytes = text.as_bytes();
    let (mut renamed, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(quote) = memchr::memchr(b'"', &bytes[at..]) {
        let start = at + quote + 1;
        let Some(end) = end_of_string(bytes, start) else { break };
        at = end + 1;
        let is_name = bytes[at..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
        if let Some(name) = names.get(&text[start..end]).filter(|_| is_name) {
            renamed.push_str(&text[copied..start]);
            renamed.push_str(name);
            copied = end;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    renamed.push_str(&text[copied..]);
    Cow::Owned(renamed)
}

/// The closing quote of a string whose text starts somewhere.
fn end_of_string(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::collections::BTreeMap;

    use super::fields;

    #[test]
    fn names_are_replaced_and_nothing_else_is() {
        let names = [("p", "confidence"), ("when", "date"), ("confidence", "confidence*")];
        let names: BTreeMap<String, String> =
            names.into_iter().map(|(theirs, ours)| (theirs.to_owned(), ours.to_owned())).collect();
        let text = r#"{"p" : 1, "x":"p", "when":[{"p":"when:","confidence":2}],"\"p":3,"p\\":4}"#;
        let expected =
            r#"{"confidence" : 1, "x":"p", "date":[{"confidence":"when:","confidence*":2}],"\"p":3,"p\\":4}"#;
        assert_eq!(fields(text, &names), expected);
        for text in ["", "[]", "{\"a\":1}", "\"p", "\"p\\", "{\"p"] {
            assert!(matches!(fields(text, &names), Cow::Borrowed(same) if same == text), "{text}");
        }
    }
}
