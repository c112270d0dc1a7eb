//! DataCite's metadata (kernel 4), as its interface takes it to register a DOI. Without one, a version has none here.

use chrono::Datelike as _;
use serde_json::{Value, json};

use super::Citation;
use crate::definition::License;
use crate::time::to_record;

impl Citation {
    /// The document.
    pub(super) fn datacite(&self) -> Value {
        let record = &self.record;
        let [as_of, _, rebuild] = self.facts();
        let mut dates = vec![
            json!({ "date": to_record(record.built_at), "dateType": "Created" }),
            json!({ "date": to_record(record.as_of), "dateType": "Other", "dateInformation": as_of }),
        ];
        dates.extend(record.watched.map(|watch| {
            let span = format!("{}/{}", to_record(watch.from), to_record(watch.until));
            json!({ "date": span, "dateType": "Collected" })
        }));
        let mut descriptions = vec![json!({ "description": rebuild, "descriptionType": "TechnicalInfo" })];
        if let Some(description) = &record.description {
            descriptions.insert(0, json!({ "description": description, "descriptionType": "Abstract" }));
        }
        let formats: std::collections::BTreeSet<&str> =
            record.files.iter().map(|file| media_type(&file.name)).collect();
        json!({
            "schemaVersion": "http://datacite.org/schema/kernel-4",
            "types": { "resourceTypeGeneral": "Dataset", "resourceType": "Dataset" },
            "creators": [{ "name": self.service(), "nameType": "Organizational" }],
            "titles": [{ "title": self.title() }],
            "publisher": { "name": self.service() },
            "publicationYear": record.built_at.year().to_string(),
            "version": record.version,
            "dates": dates,
            "sizes": [self.rows(), format!("{} bytes", record.bytes())],
            "formats": formats,
            "rightsList": record.license.iter().map(rights).collect::<Vec<_>>(),
            "alternateIdentifiers": [{
                "alternateIdentifier": record.content,
                "alternateIdentifierType": "BLAKE3 of the content",
            }],
            "descriptions": descriptions,
        })
    }
}

fn rights(license: &License) -> Value {
    let mut rights = json!({ "rights": license.to_string() });
    if let Some(address) = license.address() {
        rights["rightsUri"] = address.into();
    }
    if matches!(license, License::Identifier(_)) {
        rights["rightsIdentifier"] = license.to_string().into();
        rights["rightsIdentifierScheme"] = "SPDX".into();
        rights["schemeUri"] = "https://spdx.org/licenses/".into();
    }
    rights
}

/// The media type of a data file, as registered.
fn media_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("parquet") => "application/vnd.apache.parquet",
        Some("arrow") => "application/vnd.apache.arrow.file",
        Some("gz") => "application/gzip",
        Some("zst") => "application/zstd",
        _ => "text/csv",
    }
}
