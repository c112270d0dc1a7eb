//! Executes a plan until the server says that it is complete.
//!
//! The server buffers the answers of an execution until they are released. It ends the stream every two minutes, and
//! connections break. Either way, the client reattaches after the last answer that it received. The execution is complete only
//! when an answer says so.

use std::time::Duration;

use spark_connect_core::{ExecutePlanResponseReattachableIterator as Execution, SparkError as Fault};
use spark_connect_proto::execute_plan_response::{ObservedMetrics, ResponseType};
use spark_connect_proto::{ExecutePlanRequest, ExecutePlanResponse, Plan, UserContext, plan};
use tokio_util::sync::CancellationToken;

use crate::error::is_broken_connection;
use crate::{Cluster, SparkError};

/// The longest silence before the connection counts as broken. The server reports progress every few seconds.
const SILENCE: Duration = Duration::from_secs(180);

/// The most attempts in a row to reattach without an answer.
const ATTEMPTS: u32 = 8;

/// The longest wait between attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// How long the server may take to confirm that it interrupted or released an execution.
const FAREWELL: Duration = Duration::from_secs(10);

/// The tasks of an execution, as far as the server has planned them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tasks {
    /// How many have finished.
    pub done: u64,
    /// How many there are.
    pub planned: u64,
}

impl Cluster {
    /// Executes a plan to the end, and returns its observed metrics, or `None` if it was stopped.
    pub(crate) async fn execute(
        &self,
        plan: plan::OpType,
        stop: &CancellationToken,
        mut progress: impl FnMut(Tasks),
    ) -> Result<Option<Vec<ObservedMetrics>>, SparkError> {
        let user_id = self.client.user_id().unwrap_or_default().to_owned();
        let execution = Execution::new(ExecutePlanRequest {
            session_id: self.client.session_id().to_owned(),
            user_context: Some(UserContext { user_id, ..UserContext::default() }),
            plan: Some(Plan { op_type: Some(plan) }),
            client_type: Some(concat!("bellwether/", env!("CARGO_PKG_VERSION")).to_owned()),
            ..ExecutePlanRequest::default()
        });
        let mut metrics = Vec::new();
        let each = |response: ExecutePlanResponse| {
            metrics.extend(response.observed_metrics);
            if let Some(ResponseType::ExecutionProgress(reported)) = response.response_type {
                let count = |count: i64| u64::try_from(count).unwrap_or_default();
                let done = reported.stages.iter().map(|stage| count(stage.num_completed_tasks)).sum();
                let planned = reported.stages.iter().map(|stage| count(stage.num_tasks)).sum();
                progress(Tasks { done, planned });
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => {
                let interrupt = self.client.interrupt_operation(execution.operation_id());
                let _ = tokio::time::timeout(FAREWELL, interrupt).await;
                Ok(None)
            }
            done = self.complete(&execution, each) => {
                let release = execution.create_release_request(true).await;
                let _ = tokio::time::timeout(FAREWELL, self.client.release_execute(release)).await;
                done.map(|()| Some(metrics))
            }
        }
    }

    async fn complete(
        &self,
        execution: &Execution,
        mut each: impl FnMut(ExecutePlanResponse),
    ) -> Result<(), SparkError> {
        let mut failures = 0;
        let mut stream = self.client.execute_plan(execution.request().clone()).await;
        loop {
            let broken = match stream {
                Err(fault) => fault,
                Ok(mut answers) => loop {
                    let answer = match tokio::time::timeout(SILENCE, answers.message()).await {
                        Ok(answer) => answer.map_err(Fault::from_grpc_status),
                        Err(_) => Err(early_end()),
                    };
                    match answer {
                        Ok(Some(answer)) => {
                            failures = 0;
                            execution.set_last_response_id(&answer).await;
                            each(answer);
                        }
                        Ok(None) if execution.is_completed().await => return Ok(()),
                        Ok(None) => break early_end(),
                        Err(fault) => break fault,
                    }
                },
            };
            if execution.is_completed().await {
                return Ok(());
            }
            // The server never received the plan, or it restarted and lost the execution.
            let is_unknown = broken.error_class == UNKNOWN;
            let is_new = execution.last_response_id().await.is_none();
            if !(may_pass(&broken) || is_unknown && is_new) || failures >= ATTEMPTS {
                return Err(SparkError::of(&self.address, &broken));
            }
            if failures > 0 {
                tokio::time::sleep(Duration::from_millis(250 << failures.min(8)).min(LONGEST_WAIT)).await;
            }
            failures += 1;
            stream = match is_unknown {
                true => self.client.execute_plan(execution.request().clone()).await,
                false => self.client.reattach_execute(execution.create_reattach_request().await).await,
            };
        }
    }
}

/// The error class for an execution that the server does not know.
const UNKNOWN: &str = "INVALID_HANDLE.OPERATION_NOT_FOUND";

/// Whether reattaching may help.
fn may_pass(fault: &Fault) -> bool {
    // gRPC codes: cancelled (by a proxy), deadline exceeded, unavailable.
    matches!(fault.grpc_code, Some(1 | 4 | 14))
        || is_broken_connection(fault)
        || fault.error_class.starts_with("INVALID_CURSOR.DISCONNECTED")
        || fault.message.contains("INVALID_CURSOR.DISCONNECTED")
}

fn early_end() -> Fault {
    Fault { grpc_code: Some(14), ..Fault::connect_msg("the stream of answers ended") }
}
