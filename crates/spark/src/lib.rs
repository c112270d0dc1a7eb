//! A Spark cluster, reached by Spark Connect: computes a statement and writes its rows to Parquet files.
//!
//! Spark itself reads the tables and writes the files; only the statement, its progress and a digest pass through here. The
//! session sets what the statement needs, whatever the server's defaults are. Nothing here knows what the rows mean.
//!
//! A statement is complete once the server says so (`execution`). The server also ends the stream of answers every two minutes;
//! a client that took this for success would report it before the files exist.
//!
//! A [`RowDigest`] verifies the files: Spark computes it from the rows as it writes them, and the reader of the files from the
//! rows that it finds.

mod address;
mod error;
mod execution;
mod row_digest;

use spark_connect_core::{ChannelBuilder, RetryPolicy, SparkConnectClient};
use spark_connect_proto::expression::literal::LiteralType;
use spark_connect_proto::expression::{ExprType, ExpressionString};
use spark_connect_proto::relation::RelType;
use spark_connect_proto::write_operation::{SaveMode, SaveType};
use spark_connect_proto::{CollectMetrics, Command, Expression, Relation, Sql, WriteOperation, command, plan};
use tokio_util::sync::CancellationToken;

pub use address::Address;
pub use error::SparkError;
pub use execution::Tasks;
pub use row_digest::RowDigest;

/// Settings that statements rely on. At two bytes per row, large tables look small enough to broadcast.
const SETTINGS: [(&str, &str); 4] = [
    ("spark.sql.session.timeZone", "UTC"),
    ("spark.sql.autoBroadcastJoinThreshold", "-1"),
    ("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS"),
    // A column that was added later is null in earlier files.
    ("spark.sql.parquet.mergeSchema", "true"),
];

/// The environment variable with the server's token, which the client itself reads.
pub const TOKEN: &str = "SPARK_CONNECT_AUTHENTICATE_TOKEN";

/// The name of the digest among the metrics of an execution.
const DIGEST: &str = "digest";

/// The file that Spark writes to a folder when it is complete.
pub const SUCCESS: &str = "_SUCCESS";

/// A session on a cluster.
pub struct Cluster {
    client: SparkConnectClient,
    address: String,
}

/// A statement, and where its rows go.
#[derive(Clone, Debug)]
pub struct Write<'a> {
    /// The statement.
    pub statement: &'a str,
    /// The columns of the statement, in order.
    pub columns: &'a [&'a str],
    /// The address of a folder that does not exist yet, as the cluster addresses it.
    pub folder: &'a str,
    /// Options of Spark's writer of Parquet, such as `compression`.
    pub options: Vec<(&'static str, String)>,
}

impl Cluster {
    /// Opens a session. It ends with [`close`](Self::close), or after an hour without one.
    ///
    /// # Errors
    ///
    /// If the cluster does not answer, or denies access.
    pub async fn connect(address: &Address) -> Result<Self, SparkError> {
        let failed = |fault: spark_connect_core::SparkError| SparkError::of(address.as_str(), &fault);
        let builder = ChannelBuilder::parse(&connection(address)).map_err(failed)?;
        let mut client = SparkConnectClient::connect(&builder).await.map_err(failed)?;
        client.set_retry_policy(RetryPolicy {
            max_retries: Some(3),
            initial_backoff_ms: 500,
            ..RetryPolicy::default()
        });
        for (name, value) in SETTINGS {
            client.set_config(name, value).await.map_err(failed)?;
        }
        Ok(Self { client, address: address.as_str().to_owned() })
    }

    /// Writes the rows of a statement to Parquet files in a new folder, whose names have the order of the rows, and waits until
    /// they are complete. Returns the digest that Spark computes as it writes, or `None` if it was stopped.
    ///
    /// # Errors
    ///
    /// If the cluster refuses the statement, cannot execute it, is lost on the way, or returns no digest.
    pub async fn write(
        &self,
        write: Write<'_>,
        stop: &CancellationToken,
        progress: impl FnMut(Tasks),
    ) -> Result<Option<RowDigest>, SparkError> {
        let operation = WriteOperation {
            input: Some(observe(write.statement, write.columns)),
            source: Some("parquet".to_owned()),
            mode: SaveMode::ErrorIfExists.into(),
            save_type: Some(SaveType::Path(write.folder.to_owned())),
            options: write.options.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            ..WriteOperation::default()
        };
        let command = Command { command_type: Some(command::CommandType::WriteOperation(operation)) };
        let Some(metrics) = self.execute(plan::OpType::Command(command), stop, progress).await? else {
            return Ok(None);
        };
        let digest = metrics.iter().find(|metrics| metrics.name == DIGEST).and_then(|metrics| metrics.values.first());
        let digest = digest.and_then(|value| match &value.literal_type {
            Some(LiteralType::String(text)) => RowDigest::parse(text),
            _ => None,
        });
        digest.map(Some).ok_or_else(|| SparkError::Answer { address: self.address.clone() })
    }

    /// Closes the session.
    pub async fn close(self) {
        let _ = self.client.release_session().await;
    }
}

/// The address in the client's syntax.
fn connection(address: &Address) -> String {
    let rest = address.as_str().split_once("://").map_or("", |(_, rest)| rest);
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
