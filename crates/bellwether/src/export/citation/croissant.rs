//! Croissant's description (1.0): the files with their digests, and the columns of a dataset in one file.

use std::io::{self, Read as _};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::Citation;
use crate::disk::digest::hex;
use crate::disk::file::{FileError, FileRecord};
use crate::disk::links;
use crate::error::Result;
use crate::export::record::{ColumnRecord, VersionShape};
use crate::time::to_record;

/// Bytes that are read at once.
const PORTION: usize = 256 << 10;

/// The names of the vocabularies, as the specification recommends them.
const CONTEXT: &str = r#"{
    "@language": "en", "@vocab": "https://schema.org/", "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/", "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/", "conformsTo": "dct:conformsTo",
    "citeAs": "cr:citeAs", "column": "cr:column",
    "data": { "@id": "cr:data", "@type": "@json" }, "dataType": { "@id": "cr:dataType", "@type": "@vocab" },
    "examples": { "@id": "cr:examples", "@type": "@json" },
    "extract": "cr:extract", "field": "cr:field", "fileProperty": "cr:fileProperty", "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet", "format": "cr:format", "includes": "cr:includes", "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath", "key": "cr:key", "md5": "cr:md5", "parentField": "cr:parentField", "path": "cr:path",
    "recordSet": "cr:recordSet", "references": "cr:references", "regex": "cr:regex", "repeated": "cr:repeated",
    "replace": "cr:replace", "separator": "cr:separator", "source": "cr:source", "subField": "cr:subField",
    "transform": "cr:transform"
}"#;

impl Citation {
    /// The document.
    pub(super) fn croissant(&self) -> Result<Value> {
        let record = &self.record;
        let context: Value = serde_json::from_str(CONTEXT).expect("a constant is JSON");
        let distribution = record.files.iter().map(|file| self.file_object(file)).collect::<Result<Vec<_>>>()?;
        let mut document = json!({
            "@context": context,
            "@type": "sc:Dataset",
            "conformsTo": "http://mlcommons.org/croissant/1.0",
            "name": record.name,
            "description": format!("{}. {}.", self.title(), self.facts().join(". ")),
            "url": format!("urn:bellwether:dataset:{}:{}", record.name, record.version),
            "version": record.version,
            "datePublished": to_record(record.built_at),
            "creator": { "@type": "sc:Organization", "name": self.service() },
            "citeAs": self.bibtex(),
            "distribution": distribution,
        });
        if let Some(license) = &record.license {
            document["license"] = license.address().unwrap_or_else(|| license.to_string()).into();
        }
        if let Some(file) = self.file_of_rows() {
            document["recordSet"] = json!([self.record_set(file)]);
        }
        Ok(document)
    }

    /// A data file, which has to be that of the record.
    fn file_object(&self, file: &FileRecord) -> Result<Value> {
        let path = self.folder.join(&file.name);
        let mut reader = links::open(&path)?;
        let (mut blake3, mut sha256, mut portion) = (blake3::Hasher::new(), Sha256::new(), vec![0; PORTION]);
        loop {
            match reader.read(&mut portion) {
                Ok(0) => break,
                Ok(count) => {
                    blake3.update(&portion[..count]);
                    sha256.update(&portion[..count]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(FileError::read(&path)(error)),
            }
        }
        let found = hex(&blake3.finalize());
        if found != file.blake3 {
            let reason = format!("its BLAKE3 checksum is {found}, expected {}", file.blake3);
            return Err(FileError::damage(&path, reason));
        }
        let sha256: String = sha256.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(json!({
            "@type": "cr:FileObject",
            "@id": file.name,
            "name": file.name,
            "contentUrl": file.name,
            "contentSize": format!("{} B", file.bytes),
            "encodingFormat": encoding(&file.name),
            "sha256": sha256,
        }))
    }

    /// The file with all rows as a table that readers of Croissant know, if there is one.
    fn file_of_rows(&self) -> Option<&FileRecord> {
        let record = &self.record;
        if record.shape != VersionShape::Long || !record.partition_by.is_empty() {
            return None;
        }
        let of = |ending: &str| {
            let mut files = record.files.iter().filter(|file| file.name.ends_with(ending));
            files.next().filter(|_| files.next().is_none())
        };
        of(".parquet").or_else(|| of(".csv"))
    }

    /// The columns of a file.
    fn record_set(&self, file: &FileRecord) -> Value {
        let field = |column: &ColumnRecord| {
            json!({
                "@type": "cr:Field",
                "@id": format!("rows/{}", column.name),
                "name": format!("rows/{}", column.name),
                "dataType": data_type(&column.r#type),
                "source": { "fileObject": { "@id": file.name }, "extract": { "column": column.name } },
            })
        };
        let mut set = json!({
            "@type": "cr:RecordSet",
            "@id": "rows",
            "name": "rows",
            "field": self.record.columns.iter().map(field).collect::<Vec<_>>(),
        });
        if let Some(key) = &self.record.key {
            set["key"] = key.iter().map(|name| json!({ "@id": format!("rows/{name}") })).collect();
        }
        set
    }
}

/// The type of a column, by its name in the record.
fn data_type(words: &str) -> &'static str {
    match words {
        "true or false" => "sc:Boolean",
        "32-bit integer" => "sc:Integer",
        "64-bit float" => "sc:Float",
        timestamp if timestamp.starts_with("timestamp") => "sc:DateTime",
        _ => "sc:Text",
    }
}

/// The media type of a data file, as readers of Croissant know it.
fn encoding(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("parquet") => "application/x-parquet",
        Some("arrow") => "application/vnd.apache.arrow.file",
        Some("gz") => "application/gzip",
        Some("zst") => "application/zstd",
        _ => "text/csv",
    }
}
