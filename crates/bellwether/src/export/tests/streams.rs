use std::io::{self, Write};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::ipc::reader::StreamReader;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::{rows, schema, signals};
use crate::error::ErrorKind;
use crate::error::Result;
use crate::export::{Destination, RowEncoding, RowOutput};
use crate::plan::Format;

fn send<W: Write + Send>(format: Format, batches: &[RecordBatch], out: W) -> Result<()> {
    let out = Destination::Stream(Box::new(out));
    let mut stream = RowOutput::begin(format.into(), out, schema(), &RowEncoding::default())?;
    batches.iter().try_for_each(|batch| stream.write(batch))?;
    stream.finish()
}

fn batches() -> Vec<RecordBatch> {
    let batch = rows(&signals(&["AAPL", "XOM"], 100));
    vec![batch.slice(0, 300), batch.slice(300, 0), batch.slice(300, 500)]
}

#[test]
fn a_stream_reads_back_as_sent() {
    let expected = concat_batches(&schema(), &batches()).unwrap();
    let mut out = Vec::new();
    send(Format::Arrow, &batches(), &mut out).unwrap();
    let read: Vec<RecordBatch> = StreamReader::try_new(&out[..], None).unwrap().map(|batch| batch.unwrap()).collect();
    assert_eq!(concat_batches(&schema(), &read).unwrap(), expected);
    let mut out = Vec::new();
    send(Format::Parquet, &batches(), &mut out).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(out)).unwrap();
    assert_eq!(reader.build().unwrap().next().unwrap().unwrap(), expected);
    let mut out = Vec::new();
    send(Format::Csv, &batches(), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.lines().count(), 801);
    let mut out = Vec::new();
    send(Format::CsvGz, &batches(), &mut out).unwrap();
    assert_eq!(io::read_to_string(flate2::read::GzDecoder::new(&out[..])).unwrap(), text);
    let mut out = Vec::new();
    send(Format::CsvZst, &batches(), &mut out).unwrap();
    assert_eq!(zstd::decode_all(&out[..]).unwrap(), text.as_bytes());
}

/// A pipe that closes, or a disk that is full, after some bytes.
struct Closed(usize, io::ErrorKind);

impl Write for Closed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(self.1.into());
        }
        let count = bytes.len().min(self.0);
        self.0 -= count;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_pipe_is_told_from_other_failures() {
    for &format in Format::ALL {
        for bytes in [0, 10, 1000] {
            let error = send(format, &batches(), Closed(bytes, io::ErrorKind::BrokenPipe)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Stream, "{format} after {bytes}: {error:?}");
            let source = error.io_source().expect("the system says why");
            assert_eq!(source.kind(), io::ErrorKind::BrokenPipe, "{format} after {bytes}");
            let error = send(format, &batches(), Closed(bytes, io::ErrorKind::StorageFull)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Stream, "{format} after {bytes}: {error:?}");
            let source = error.io_source().expect("the system says why");
            assert_eq!(source.kind(), io::ErrorKind::StorageFull);
        }
    }
}
