//! Writes HTML in which text is never taken for markup.
//!
//! Markup (element and attribute names, the style and the script) is part of the program; everything else comes in as
//! text or as an attribute's value, and is escaped as it is written. There is no other way in. Elements are closed
//! where they are opened, and an address becomes a link only if it is `http` or `https`.

use std::fmt::{self, Display, Write};

use url::Url;

use crate::text::escape::{is_hidden, push_escaped};

/// The attributes of an element.
pub(crate) type Attributes<'a> = &'a [(&'static str, &'a dyn Display)];

/// A page, or a part of one.
#[derive(Debug, Default)]
pub struct Html {
    text: String,
}

impl Html {
    /// An empty page with its doctype.
    pub(super) fn document() -> Self {
        Self { text: "<!doctype html>\n".to_owned() }
    }

    /// An element and its content.
    pub fn element(&mut self, name: &'static str, attributes: Attributes<'_>, content: impl FnOnce(&mut Self)) {
        self.open(name, attributes);
        self.text.push('>');
        content(self);
        self.close(name);
    }

    /// An element that holds only text.
    pub fn leaf(&mut self, name: &'static str, attributes: Attributes<'_>, text: impl Display) {
        self.element(name, attributes, |html| html.text(text));
    }

    /// A void element of HTML.
    pub fn void(&mut self, name: &'static str, attributes: Attributes<'_>) {
        self.open(name, attributes);
        self.text.push('>');
    }

    /// An empty element of SVG.
    pub fn shape(&mut self, name: &'static str, attributes: Attributes<'_>) {
        self.open(name, attributes);
        self.text.push_str("/>");
    }

    /// Text.
    pub fn text(&mut self, text: impl Display) {
        write!(Escaping(&mut self.text), "{text}").expect("a string takes any text");
    }

    /// Text from the vendor, isolated so that its writing direction cannot reorder the text around it.
    pub fn foreign(&mut self, text: &str) {
        self.leaf("bdi", &[], text);
    }

    /// Text from the vendor, linked to the vendor's address if that is `http` or `https`.
    pub(crate) fn link(&mut self, address: &str, text: &str) {
        match Url::parse(address) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => {
                let attributes: Attributes<'_> = &[("href", &url.as_str()), ("rel", &"noopener noreferrer nofollow")];
                self.element("a", attributes, |html| html.foreign(text));
            }
            _ => self.foreign(text),
        }
    }

    /// The page's style.
    pub(super) fn style(&mut self, style: &'static str) {
        self.ours("style", style);
    }

    /// The page's script.
    pub(super) fn script(&mut self, script: &'static str) {
        self.ours("script", script);
    }

    fn ours(&mut self, name: &'static str, text: &'static str) {
        assert!(!text.contains("</"), "our own text never closes an element");
        self.open(name, &[]);
        self.text.push('>');
        self.text.push_str(text);
        self.close(name);
    }

    fn open(&mut self, name: &'static str, attributes: Attributes<'_>) {
        self.text.push('<');
        self.text.push_str(name);
        for (attribute, value) in attributes {
            self.text.push(' ');
            self.text.push_str(attribute);
            self.text.push_str("=\"");
            self.text(value);
            self.text.push('"');
        }
    }

    fn close(&mut self, name: &'static str) {
        self.text.push_str("</");
        self.text.push_str(name);
        self.text.push('>');
        if matches!(name, "section" | "figure" | "svg" | "tr" | "p" | "head" | "header") {
            self.text.push('\n');
        }
    }

    /// The finished page.
    pub(super) fn into_string(self) -> String {
        self.text
    }
}

/// Escapes text, both between tags and in attribute values.
struct Escaping<'a>(&'a mut String);

impl Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                '\n' | '\t' => self.0.push(character),
                // Some of these are not allowed in a page, and the others are invisible.
                hidden if is_hidden(hidden) => push_escaped(self.0, hidden),
                other => self.0.push(other),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Html;

    fn render(write: impl FnOnce(&mut Html)) -> String {
        let mut html = Html::default();
        write(&mut html);
        html.into_string()
    }

    #[test]
    fn text_is_escaped_everywhere() {
        let hostile = "</td><script>alert(1)</script>\" onmouseover='x' & \u{0}";
        let escaped = "&lt;/td&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot; onmouseover=&#39;x&#39; &amp; \\u0000";
        assert_eq!(render(|html| html.leaf("td", &[], hostile)), format!("<td>{escaped}</td>"));
        assert_eq!(render(|html| html.shape("rect", &[("data-v", &hostile)])), format!("<rect data-v=\"{escaped}\"/>"));
    }

    #[test]
    fn only_http_urls_are_linked() {
        for address in [
            "javascript:alert(1)",
            " JaVaScRiPt:alert(1)",
            "data:text/html,x",
            "vbscript:x",
            "file:///etc",
            "//x",
            "x",
            "",
        ] {
            assert_eq!(render(|html| html.link(address, "t")), "<bdi>t</bdi>", "{address}");
        }
        let linked = render(|html| html.link("https://x.example/a\"b?c=d&e", "t"));
        assert_eq!(
            linked,
            "<a href=\"https://x.example/a%22b?c=d&amp;e\" rel=\"noopener noreferrer nofollow\"><bdi>t</bdi></a>"
        );
    }
}
