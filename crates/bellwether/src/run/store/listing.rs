//! Listings in the interfaces of S3, Google and Azure: XML whose root says that it is one.
//!
//! The client takes any XML for an empty listing, a web page among them, and fails on the first key that it cannot spell
//! as a path. So a listing is read here first: what is not one is refused, and the entries of keys that nothing of ours
//! can have (`archive//x`, `archive/./x`, control characters) are taken out of it and named.

use object_store::path::Path as Key;
use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::Event;

const OTHER: &str = "its answer is not a listing: there is no store at this address, or another kind of store";
const MALFORMED: &str = "its listing is not valid XML";

/// A listing in XML without the entries of keys that are no paths, and these keys.
pub(crate) fn usable(answer: &[u8]) -> Result<(Vec<u8>, Vec<String>), &'static str> {
    let mut reader = Reader::from_reader(answer);
    reader.config_mut().expand_empty_elements = true;
    let (mut text, mut skipped, mut copied) = (Vec::new(), Vec::new(), 0);
    let (mut has_root, mut depth) = (false, 0_usize);
    loop {
        let start = reader.buffer_position() as usize;
        match reader.read_event().map_err(|_| if has_root { MALFORMED } else { OTHER })? {
            Event::Start(root) if !has_root => {
                // Of S3 and Google, and of Azure.
                has_root = matches!(root.local_name().as_ref(), b"ListBucketResult" | b"EnumerationResults");
                depth = 1;
                if !has_root {
                    return Err(OTHER);
                }
            }
            Event::Start(entry)
                if matches!(entry.local_name().as_ref(), b"Contents" | b"CommonPrefixes" | b"Blob" | b"BlobPrefix") =>
            {
                let inside = reader.read_to_end(entry.name()).map_err(|_| MALFORMED)?;
                let key = key_of(&answer[inside.start as usize..inside.end as usize]).map_err(|_| MALFORMED)?;
                let as_text = std::str::from_utf8(key).ok().and_then(|key| unescape(key).ok());
                if as_text.is_none_or(|key| Key::parse(key).is_err()) {
                    skipped.push(shown(key));
                    text.extend_from_slice(&answer[copied..start]);
                    copied = reader.buffer_position() as usize;
                }
            }
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Eof if !has_root => return Err(OTHER),
            Event::Eof if depth > 0 => return Err(MALFORMED),
            Event::Eof => {
                text.extend_from_slice(&answer[copied..]);
                return Ok((text, skipped));
            }
            _ => {}
        }
    }
}

/// The key of an entry, as it stands in a listing.
fn key_of(entry: &[u8]) -> Result<&[u8], quick_xml::Error> {
    let mut reader = Reader::from_reader(entry);
    reader.config_mut().expand_empty_elements = true;
    loop {
        match reader.read_event()? {
            Event::Start(element) if matches!(element.local_name().as_ref(), b"Key" | b"Prefix" | b"Name") => {
                let inside = reader.read_to_end(element.name())?;
                return Ok(&entry[inside.start as usize..inside.end as usize]);
            }
            Event::Eof => return Ok(b""),
            _ => {}
        }
    }
}

/// The beginning of a key for a message.
fn shown(key: &[u8]) -> String {
    let text = String::from_utf8_lossy(key);
    let text = unescape(&text).unwrap_or(text.clone());
    match text.char_indices().nth(120) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{MALFORMED, OTHER, usable};

    fn listing(keys: &[&str]) -> String {
        let entry = |key: &&str| format!("<Contents><Key>{key}</Key><Size>3</Size></Contents>");
        let entries: String = keys.iter().map(entry).collect();
        format!("<?xml version=\"1.0\"?><ListBucketResult><Name>b</Name>{entries}</ListBucketResult>")
    }

    #[test]
    fn entries_of_keys_that_are_no_paths_are_taken_out_and_named() {
        let odd = ["a//x", "a/./x", "a/../x", "a/\u{1}", "a/&#10;b", "//", "a/&bogus;"];
        let kept = ["a/x", "a/", "a b/c", "a&amp;b", "ü/&#252;"];
        for key in odd {
            let (text, skipped) = usable(listing(&["a/x", key, "a/y"]).as_bytes()).unwrap();
            assert_eq!(skipped.len(), 1, "{key}");
            assert_eq!(String::from_utf8(text).unwrap(), listing(&["a/x", "a/y"]), "{key}");
        }
        for key in kept {
            let text = listing(&[key]);
            assert_eq!(usable(text.as_bytes()), Ok((text.clone().into_bytes(), Vec::new())), "{key}");
        }
        let prefixes = "<ListBucketResult><CommonPrefixes><Prefix>a//</Prefix></CommonPrefixes></ListBucketResult>";
        assert_eq!(usable(prefixes.as_bytes()).unwrap().1, ["a//"]);
        let azure = "<EnumerationResults><Blobs><Blob><Name>a//x</Name></Blob><Blob><Name>a/x</Name></Blob>\
                     <BlobPrefix><Name>a/./</Name></BlobPrefix></Blobs><NextMarker/></EnumerationResults>";
        assert_eq!(usable(azure.as_bytes()).unwrap().1, ["a//x", "a/./"]);
        let not_text = listing(&["#"]).into_bytes().into_iter().map(|byte| if byte == b'#' { 0xff } else { byte });
        let not_text: Vec<u8> = not_text.collect();
        assert_eq!(usable(&not_text).unwrap().1.len(), 1);
    }

    #[test]
    fn what_is_not_a_listing_is_refused() {
        for other in [
            "",
            "<!DOCTYPE html><html><body><p>Welcome<br></body></html>",
            "<html/>",
            "{\"objects\": []}",
            "ok",
            "<?xml version=\"1.0\"?><Error><Code>InternalError</Code></Error>",
            "<ListAllMyBucketsResult><Contents><Key>a</Key></Contents></ListAllMyBucketsResult>",
        ] {
            assert_eq!(usable(other.as_bytes()), Err(OTHER), "{other}");
        }
        for broken in ["<ListBucketResult><Contents>", "<ListBucketResult></Contents>", "<ListBucketResult><a b=\"></"]
        {
            assert_eq!(usable(broken.as_bytes()), Err(MALFORMED), "{broken}");
        }
    }
}
