//! Listings in the interfaces of S3, Google and Azure: XML whose root says that it is one.
//!
//! The client takes any XML for an empty listing, a web page among them, and fails on the first key that it cannot spell
//! as a path. So a listing is read here first: what is not one is refused, and the entries of keys that nothing of ours
//! can have (`archive//x`, `archive/./x`, control characters) are taken out of it and named.

use object_store::path::Path as Key;
use quick_xml::Reader;
use quick_xml::errors::Error as XmlError;
use quick_xml::escape::unescape;
use quick_xml::events::Event;

/// The most characters of a key in a message.
const SHOWN: usize = 120;

/// A listing without the entries of keys that are no paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UsableListing {
    /// The listing.
    pub(crate) text: Vec<u8>,
    /// The keys that were taken out.
    pub(crate) skipped: Vec<String>,
}

/// Why an answer is no listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ListingFault {
    /// Another document: a web page, an error.
    #[error("its answer is not a listing: there is no store at this address, or another kind of store")]
    Other,

    /// XML that breaks off or is not well-formed.
    #[error("its listing is not valid XML")]
    Malformed,
}

/// An interface's listing: its root, the path to its entries, and the elements with an entry's key.
#[derive(Clone, Copy, Debug)]
struct ListingForm {
    root: &'static [u8],
    /// The depth of an entry; the root has depth one.
    depth: usize,
    entries: [(&'static [u8], &'static [u8]); 2],
}

/// S3 and Google; Azure.
const DIALECTS: [ListingForm; 2] = [
    ListingForm {
        root: b"ListBucketResult",
        depth: 2,
        entries: [(b"Contents", b"Key"), (b"CommonPrefixes", b"Prefix")],
    },
    ListingForm { root: b"EnumerationResults", depth: 3, entries: [(b"Blob", b"Name"), (b"BlobPrefix", b"Name")] },
];

/// An entry that is being read.
#[derive(Clone, Copy, Debug)]
struct ListedEntry<'a> {
    start: usize,
    element: &'static [u8],
    /// Where its key starts, while that is being read.
    key_start: Option<usize>,
    key: &'a [u8],
}

/// Reads a listing, and takes out the entries whose keys are no paths.
pub(crate) fn usable(answer: &[u8]) -> Result<UsableListing, ListingFault> {
    let malformed = |_: XmlError| ListingFault::Malformed;
    let mut reader = Reader::from_reader(answer);
    reader.config_mut().expand_empty_elements = true;
    let mut usable = UsableListing::default();
    let (mut dialect, mut depth, mut copied) = (None, 0_usize, 0);
    let mut entry: Option<ListedEntry<'_>> = None;
    loop {
        let start = position(&reader);
        let event = reader.read_event().map_err(|error| match dialect {
            Some(_) => malformed(error),
            None => ListingFault::Other,
        })?;
        match event {
            Event::Start(element) => {
                depth += 1;
                let name = element.local_name();
                let Some(dialect) = dialect else {
                    let is_root = |dialect: &&ListingForm| dialect.root == name.as_ref();
                    dialect = Some(DIALECTS.iter().find(is_root).ok_or(ListingFault::Other)?);
                    continue;
                };
                match &mut entry {
                    None if depth == dialect.depth => {
                        let kind = dialect.entries.iter().find(|(entry, _)| *entry == name.as_ref());
                        entry = kind.map(|(_, element)| ListedEntry { start, element, key_start: None, key: b"" });
                    }
                    Some(entry) if depth == dialect.depth + 1 && entry.element == name.as_ref() => {
                        entry.key_start = Some(position(&reader));
                    }
                    _ => {}
                }
            }
            Event::End(_) => {
                if let (Some(dialect), Some(open)) = (dialect, &mut entry) {
                    if depth == dialect.depth + 1
                        && let Some(key_start) = open.key_start.take()
                    {
                        open.key = answer.get(key_start..start).unwrap_or_default();
                    } else if depth == dialect.depth {
                        if !is_path(open.key) {
                            usable.skipped.push(key_text(open.key));
                            usable.text.extend_from_slice(answer.get(copied..open.start).unwrap_or_default());
                            copied = position(&reader);
                        }
                        entry = None;
                    }
                }
                depth = depth.saturating_sub(1);
            }
            Event::Eof => break,
            _ => {}
        }
    }
    match (dialect, depth) {
        (None, _) => Err(ListingFault::Other),
        (Some(_), 0) => {
            usable.text.extend_from_slice(answer.get(copied..).unwrap_or_default());
            Ok(usable)
        }
        (Some(_), _) => Err(ListingFault::Malformed),
    }
}

fn position(reader: &Reader<&[u8]>) -> usize {
    usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX)
}

/// Whether the client takes a key, as it stands in a listing, for a path.
fn is_path(key: &[u8]) -> bool {
    let text = std::str::from_utf8(key).ok().and_then(|text| unescape(text).ok());
    text.is_some_and(|text| Key::parse(text).is_ok())
}

/// A key for a message.
fn key_text(key: &[u8]) -> String {
    let text = String::from_utf8_lossy(key);
    let text = unescape(&text).map_or_else(|_| text.to_string(), |text| text.into_owned());
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::{ListingFault, usable};

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
            let found = usable(listing(&["a/x", key, "a/y"]).as_bytes()).unwrap();
            assert_eq!(found.skipped.len(), 1, "{key}");
            assert_eq!(String::from_utf8(found.text).unwrap(), listing(&["a/x", "a/y"]), "{key}");
        }
        for key in kept {
            let text = listing(&[key]);
            let found = usable(text.as_bytes()).unwrap();
            assert_eq!((found.skipped.len(), found.text.as_slice()), (0, text.as_bytes()), "{key}");
        }
        let prefixes = "<ListBucketResult><CommonPrefixes><Prefix>a//</Prefix></CommonPrefixes></ListBucketResult>";
        assert_eq!(usable(prefixes.as_bytes()).unwrap().skipped, ["a//"]);
        let azure = "<EnumerationResults><Blobs><Blob><Name>a//x</Name></Blob><Blob><Name>a/x</Name></Blob>\
                     <BlobPrefix><Name>a/./</Name></BlobPrefix></Blobs><NextMarker/></EnumerationResults>";
        assert_eq!(usable(azure.as_bytes()).unwrap().skipped, ["a//x", "a/./"]);
        let not_text = listing(&["#"]).into_bytes().into_iter().map(|byte| if byte == b'#' { 0xff } else { byte });
        let not_text: Vec<u8> = not_text.collect();
        assert_eq!(usable(&not_text).unwrap().skipped.len(), 1);
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
            assert_eq!(usable(other.as_bytes()), Err(ListingFault::Other), "{other}");
        }
        for broken in ["<ListBucketResult><Contents>", "<ListBucketResult></Contents>", "<ListBucketResult><a b=\"></"]
        {
            assert_eq!(usable(broken.as_bytes()), Err(ListingFault::Malformed), "{broken}");
        }
    }
}
