//! Airflow DAGs, one per definition, in one Python file.

use bellwether::error::Result;
use bellwether::plan::Schedule;

use super::dialect::{CronDialect, Days};
use super::settings::Action;
use super::{EXIT_CODES, Setup, quote};

pub(super) fn dags(setup: &Setup) -> Result<String> {
    let mut text = format!(
        "\
# Put this file into the folder of DAGs of Airflow 3. The workers need the program and the project at these paths, and the
# API key in the file that BELLWETHER_API_KEY_FILE names.
{EXIT_CODES}{left_out}{clocks}\
# A task that ends with 75 or 130 is tried again; any other failure ends it.
import os
import subprocess
from datetime import timedelta

from airflow.sdk import dag, task
from airflow.timetables.trigger import CronTriggerTimetable

try:
    from airflow.sdk.exceptions import AirflowFailException
except ImportError:  # Airflow 3.0
    from airflow.exceptions import AirflowFailException

ROOT = {root}
ENVIRONMENT = {{\"BELLWETHER_API_KEY_FILE\": {key}}}
LATER = (75, 130)


def scheduled(name, cron, timezone, command, retry_delay):
    @dag(
        dag_id=f\"bellwether-{{name}}\",
        schedule=CronTriggerTimetable(cron, timezone=timezone),
        catchup=False,
        max_active_runs=1,
        tags=[\"bellwether\"],
    )
    def definition():
        @task(
            task_id=\"run\",
            retries=10,
            retry_delay=retry_delay,
            retry_exponential_backoff=True,
            max_retry_delay=timedelta(minutes=15),
        )
        def run():
            code = subprocess.run(command, cwd=ROOT, env={{**os.environ, **ENVIRONMENT}}).returncode
            if code in LATER:
                raise RuntimeError(f\"a temporary failure, exit code {{code}}: the next attempt resumes\")
            if code != 0:
                raise AirflowFailException(f\"exit code {{code}}\")

        run()

    return definition()

",
        left_out = setup.left_out(Action::Run("")),
        clocks = setup.clock_changes(
            "Airflow runs a skipped time as much later as the clock skips, a repeated one the second time,\n# and the next \
             of every hour of some days off by the change",
            // It adds the time between two runs to the first, which is off by the change if there is one between them.
            |schedule| schedule.cron.is_hourly() && !names_every_day(schedule),
        ),
        root = quote(&setup.root.to_string_lossy()),
        key = quote(&setup.key_file().to_string_lossy()),
    );
    for (plan, schedule) in &setup.plans {
        let words: Vec<String> = setup.words(Action::Run(&plan.name)).iter().map(|word| quote(word)).collect();
        text.push_str(&format!(
            "\nscheduled(\n    {name},\n    cron={cron},\n    timezone={zone},\n    command=[{command}],\n    \
             retry_delay=timedelta(seconds={retry}),\n)\n",
            name = quote(&plan.name),
            cron = quote(&CronDialect::Airflow.five_fields(plan, schedule)?),
            zone = quote(&schedule.timezone.to_string()),
            command = words.join(", "),
            retry = schedule.retry_after.as_secs(),
        ));
    }
    Ok(text)
}

fn names_every_day(schedule: &Schedule) -> bool {
    let fields = schedule.cron.fields();
    fields.months.len() == 12 && Days::of(fields) == Days::Every
}
