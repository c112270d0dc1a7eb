//! The demo service, until it is stopped.

use std::sync::{Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use bellwether::error::{Error, Result};
use bellwether::interface::ChangeSet;
use bellwether::run::DEMO_SEED;
use bellwether::serve::{self, Universe};
use bellwether::time::Clock;
use chrono::NaiveDate;
use pyo3::prelude::*;
use tokio_util::sync::CancellationToken;

use crate::arguments::{self, day};
use crate::fault;
use crate::supervise::refuse_fork;

/// The key that it accepts; not a secret.
const KEY: &str = "demo";

/// A demo service on a free port of the loopback address, on its own thread.
#[pyclass(frozen, module = "bellwether._bellwether")]
pub(crate) struct Service {
    #[pyo3(get)]
    base_url: String,
    #[pyo3(get)]
    sentiment_base_url: String,
    stop: CancellationToken,
    server: Mutex<Option<JoinHandle<()>>>,
}

#[pymethods]
impl Service {
    #[new]
    #[pyo3(signature = (today=None, seed=None, change_set=None))]
    fn new(py: Python<'_>, today: Option<&str>, seed: Option<u64>, change_set: Option<&str>) -> PyResult<Self> {
        refuse_fork()?;
        let started = || {
            let today =
                today.map(|text| day("today", text)).transpose()?.unwrap_or_else(|| Clock::System.now().date_naive());
            let set = change_set.map(arguments::change_set).transpose()?.unwrap_or_default();
            start(today, seed.unwrap_or(DEMO_SEED), set)
        };
        py.detach(started).map_err(|error| fault::exception(py, &error))
    }

    /// The key that it accepts.
    #[getter]
    fn key(&self) -> &'static str {
        KEY
    }

    /// Stops it. Stopping it again does nothing.
    fn stop(&self, py: Python<'_>) {
        self.stop.cancel();
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A thread that panicked has stopped too.
        py.detach(|| server.map(JoinHandle::join));
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn start(today: NaiveDate, seed: u64, change_set: ChangeSet) -> Result<Service> {
    let (send, started) = mpsc::sync_channel(1);
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let server = thread::Builder::new().name("bellwether demo service".to_owned()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(source) => return drop(send.send(Err(Error::start(source)))),
        };
        runtime.block_on(async {
            let service = serve::Service::new(Universe::new(seed, today), change_set, KEY.to_owned());
            match serve::start(service, 0).await {
                Ok(running) => {
                    let addresses = (running.base_url().to_string(), running.sentiment_base_url().to_string());
                    let _ = send.send(Ok(addresses));
                    stopped.cancelled().await;
                    running.stop().await;
                }
                Err(error) => drop(send.send(Err(error))),
            }
        });
    });
    let server = server.map_err(Error::start)?;
    let addresses =
        started.recv().unwrap_or_else(|_| Err(Error::bug("the demo service left its message on standard error")));
    let (base_url, sentiment_base_url) = addresses?;
    Ok(Service { base_url, sentiment_base_url, stop, server: Mutex::new(Some(server)) })
}
