//! What a service says now.

use std::path::PathBuf;

use bellwether::error::{Error, Result};
use bellwether::load::Dataset;
use bellwether::load::now::{Answer, Question, Whose};
use bellwether::project::Project;
use bellwether::run::Control;
use pyo3::prelude::*;

use crate::arguments::{definition_value, each};
use crate::definition::DefinitionArgument;
use crate::publish::{Key, block_on, take_key};
use crate::rows::Rows;
use crate::supervise::quietly;

/// What is asked, as a Python argument.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct QuestionArgument {
    tickers: Vec<String>,
    periods: Option<Vec<String>>,
    regimes: Option<Vec<String>>,
    last: String,
    news: bool,
}

impl QuestionArgument {
    fn question(&self) -> Result<Question> {
        Ok(Question {
            tickers: each("tickers", Some(&self.tickers))?.unwrap_or_default(),
            periods: each("periods", self.periods.as_deref())?.unwrap_or_default(),
            regimes: each("regimes", self.regimes.as_deref())?.unwrap_or_default(),
            last: definition_value("last", &self.last)?,
            news: self.news,
        })
    }
}

/// The signals of some tickers as a service says them now, and the articles if they are wanted. Nothing is kept without an
/// archive.
#[pyfunction]
pub(crate) fn get(
    py: Python<'_>,
    question: QuestionArgument,
    definition: Option<DefinitionArgument>,
    demo: bool,
    key: Option<Py<Key>>,
    archive: Option<PathBuf>,
) -> PyResult<(Rows, Option<Rows>)> {
    let key = key.map(|key| key.get().0.clone());
    quietly(py, move |stop| {
        let (question, project) = (question.question()?, Project::find()?);
        let whose = match &definition {
            Some(_) if demo => {
                return Err(Error::usage(
                    "the demo beside a definition, which has its own service",
                    "leave out one of them",
                ));
            }
            Some(definition) => Whose::Definition(Box::new(definition.file()?)),
            None if demo => Whose::Demo,
            None => Whose::Only,
        };
        let mut plan = question.plan(&whose, &project)?;
        take_key(&mut plan, key);
        let control = Control { stop: stop.clone(), ..Control::default() };
        let Answer { signals, news, .. } = &block_on(question.ask(plan, archive, control))?;
        // In memory, since the folder that they are read from goes.
        let held = |rows: &Dataset| -> Result<Rows> {
            let batches = rows.batches()?.collect::<std::result::Result<Vec<_>, _>>().map_err(Error::of_stream)?;
            Ok(Rows::in_memory(rows.schema(), batches))
        };
        Ok((held(signals)?, news.as_ref().map(held).transpose()?))
    })
}
