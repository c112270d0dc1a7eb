//! A Spark cluster, reached by Spark Connect: computes the statement of a dataset and writes its rows.
//!
//! Spark itself reads the archive and writes the Parquet files; only the statement, its progress and a digest pass through
//! here. The session sets what the statement needs, whatever the server's defaults are.
//!
//! A statement is complete once the server says so (`execution`). The server also ends the stream of answers every two minutes;
//! a client that took this for success would report it before the files exist.
//!
//! A [`RowDigest`] verifies the files: Spark computes it from the rows as it writes them, and the reader of the files from the
//! rows that it finds.

mod error;
mod execution;
mod row_digest;

use std::collections::HashMap;
use std::env;

use spark_connect_core::{ChannelBuilder, RetryPolicy, SparkConnectClient};
use spark_connect_proto::expression::literal::LiteralType;
use spark_connect_proto::expression::{ExprType, ExpressionString};
use spark_connect_proto::relation::RelType;
use spark_connect_proto::write_operation::{SaveMode, SaveType};
use spark_connect_proto::{CollectMetrics, Command, Expression, Relation, Sql, WriteOperation, command, plan};

pub(crate) use error::SparkError;
pub(crate) use execution::Tasks;
pub(crate) use row_digest::RowDigest;

use crate::error::{Error, Result};
use crate::key;
use crate::plan::Codec;
use crate::process::cancel::CancellationToken;
use crate::sql::Engine;

/// Settings that statements rely on. At two bytes per row, large tables look small enough to broadcast.
const SETTINGS: [(&str, &str); 3] = [
    ("spark.sql.session.timeZone", "UTC"),
    ("spark.sql.autoBroadcastJoinThreshold", "-1"),
    ("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS"),
];

/// The environment variable with the server's token.
const TOKEN: &str = "SPARK_CONNECT_AUTHENTICATE_TOKEN";

/// The name of the digest among the metrics of an execution.
const DIGEST: &str = "digest";

/// The file that Spark writes to a folder when it is complete.
pub(crate) const SUCCESS: &str = "_SUCCESS";

/// A session on a cluster.
pub(crate) struct Cluster {
    client: SparkConnectClient,
    engine: String,
    stop: CancellationToken,
}

/// A statement, and where its rows go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write<'a> {
    pub(crate) statement: &'a str,
    /// The address of a folder that does not exist yet, as the cluster addresses it.
    pub(crate) folder: &'a str,
    /// The columns of the statement, in order.
    pub(crate) columns: &'a [&'a str],
    pub(crate) codec: Codec,
}

impl Cluster {
    /// Opens a session.
    pub(crate) async fn connect(engine: &Engine, stop: &CancellationToken) -> Result<Self> {
        let failed = |fault: &spark_connect_core::SparkError| SparkError::of(engine.as_str(), fault);
        let builder = ChannelBuilder::parse(&connection(engine)).map_err(|fault| failed(&fault))?;
        let mut client = SparkConnectClient::connect(&builder).await.map_err(|fault| failed(&fault))?;
        client.set_retry_policy(RetryPolicy {
            max_retries: Some(3),
            initial_backoff_ms: 500,
            ..RetryPolicy::default()
        });
        let cluster = Self { client, engine: engine.as_str().to_owned(), stop: stop.clone() };
        for (name, value) in SETTINGS {
            let set = cluster.client.set_config(name, value);
            cluster.unless_stopped(set).await?.map_err(|fault| failed(&fault))?;
        }
        Ok(cluster)
    }

    /// Writes the rows of a statement to Parquet files in a new folder, whose names have the order of the rows, and waits until
    /// they are complete. Returns the digest that Spark computes as it writes.
    pub(crate) async fn write(&self, write: Write<'_>, progress: impl FnMut(Tasks)) -> Result<RowDigest> {
        let (codec, level) = match write.codec {
            Codec::Zstd(level) => ("zstd", Some(level.to_string())),
            Codec::Snappy => ("snappy", None),
            Codec::None => ("none", None),
        };
        let mut options = HashMap::from([("compression".to_owned(), codec.to_owned())]);
        options.extend(level.map(|level| ("parquet.compression.codec.zstd.level".to_owned(), level)));
        let operation = WriteOperation {
            input: Some(observe(write.statement, write.columns)),
            source: Some("parquet".to_owned()),
            mode: SaveMode::ErrorIfExists.into(),
            save_type: Some(SaveType::Path(write.folder.to_owned())),
            options,
            ..WriteOperation::default()
        };
        let command = Command { command_type: Some(command::CommandType::WriteOperation(operation)) };
        let metrics = self.execute(plan::OpType::Command(command), progress).await?;
        let digest = metrics.iter().find(|metrics| metrics.name == DIGEST).and_then(|metrics| metrics.values.first());
        let digest = digest.and_then(|value| match &value.literal_type {
            Some(LiteralType::String(text)) => RowDigest::parse(text),
            _ => None,
        });
        digest.ok_or_else(|| SparkError::Answer { engine: self.engine.clone() }.into())
    }

    /// Closes the session. The server forgets one that is not closed after an hour.
    pub(crate) async fn close(self) {
        let _ = self.unless_stopped(self.client.release_session()).await;
    }

    async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(Error::interruption()),
            done = work => Ok(done),
        }
    }
}

/// The address in the client's syntax. The client itself reads the token from the environment.
fn connection(engine: &Engine) -> String {
    // It is masked wherever text is shown.
    key::mask(env::var(TOKEN));
    let rest = engine.as_str().split_once("://").map_or("", |(_, rest)| rest);
    let gap = if rest.contains("/;") { "" } else { "/" };
    format!("sc://{}{gap};user_id=bellwether;user_agent=bellwether", rest.trim_end_matches('/'))
}

/// The rows of a statement, and their digest as a metric of their execution.
fn observe(statement: &str, columns: &[&str]) -> Relation {
    let relation = |rel_type| Relation { rel_type: Some(rel_type), ..Relation::default() };
    let sql = Sql { query: statement.to_owned(), ..Sql::default() };
    let digest = ExpressionString { expression: format!("{} as {DIGEST}", RowDigest::expression(columns)) };
    relation(RelType::CollectMetrics(Box::new(CollectMetrics {
        input: Some(Box::new(relation(RelType::Sql(sql)))),
        name: DIGEST.to_owned(),
        metrics: vec![Expression { expr_type: Some(ExprType::ExpressionString(digest)), ..Expression::default() }],
    })))
}
