//! The page's content security policy: its own script and style, and no network access.

use sha2::{Digest, Sha256};

/// The Content-Security-Policy for a page with one style and one script.
pub(super) fn policy(style: &str, script: &str) -> String {
    let [style, script] = [style, script].map(|text| base64(&Sha256::digest(text.as_bytes())));
    format!(
        "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; base-uri 'none'; form-action 'none'"
    )
}

/// Base64, for the digests in the policy.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let of_three = |three: &[u8]| {
        let number =
            (0..3).fold(0_usize, |number, index| number << 8 | usize::from(three.get(index).copied().unwrap_or(0)));
        let digit = move |index: usize| {
            if index > three.len() { '=' } else { char::from(DIGITS[number >> (18 - 6 * index) & 63]) }
        };
        [digit(0), digit(1), digit(2), digit(3)]
    };
    bytes.chunks(3).flat_map(of_three).collect()
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base_64_matches_the_standard() {
        for (text, expected) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("\u{ff}", "w78=")]
        {
            assert_eq!(base64(text.as_bytes()), expected);
        }
    }
}
