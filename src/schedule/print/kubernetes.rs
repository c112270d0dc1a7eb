//! Kubernetes CronJobs, one per definition.

use bellwether::error::Result;
use bellwether::plan::{Plan, Schedule};

use super::dialect::CronDialect;
use super::settings::Action;
use super::{EXIT_CODES, Setup, quote};

pub(super) fn jobs(setup: &Setup) -> Result<String> {
    let setup = &setup.logging_json();
    let mut text = format!(
        "\
# Apply with `kubectl apply -f FILE`, after these:
#   kubectl create secret generic bellwether-api-key --from-file=api-key=PATH
#   a PersistentVolumeClaim `bellwether` with the project, mounted at {root}
#   an image `bellwether:{version}` with the program at {program}
{EXIT_CODES}{left_out}{clocks}\
# A pod that ends with 75 or 130 is started again, up to ten times; any other failure ends the job.
",
        left_out = setup.left_out(Action::Run("")),
        clocks = setup
            .clock_changes("Kubernetes does not run a skipped time, and runs a repeated one both times", |_| false,),
        root = setup.root.display(),
        version = env!("CARGO_PKG_VERSION"),
        program = setup.program.display(),
    );
    for (plan, schedule) in &setup.plans {
        text.push_str(&job(setup, plan, schedule)?);
    }
    Ok(text)
}

fn job(setup: &Setup, plan: &Plan, schedule: &Schedule) -> Result<String> {
    let words = setup.words(Action::Run(&plan.name));
    let command: Vec<String> = words.iter().map(|word| quote(word)).collect();
    let outside = setup.writable().into_iter().filter(|folder| !folder.starts_with(&setup.root));
    let volumes: Vec<String> =
        [setup.root.clone()].into_iter().chain(outside).map(|path| path.to_string_lossy().into_owned()).collect();
    let mounts: String = volumes
        .iter()
        .enumerate()
        .map(|(number, path)| {
            let subpath =
                if number == 0 { String::new() } else { format!("\n                  subPath: part-{number}") };
            format!("                - name: project\n                  mountPath: {}{subpath}\n", quote(path))
        })
        .collect();
    Ok(format!(
        "---
apiVersion: batch/v1
kind: CronJob
metadata:
  name: {name}
  labels:
    app.kubernetes.io/name: bellwether
spec:
  schedule: {cron}
  timeZone: {zone}
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: {catch_up}
  successfulJobsHistoryLimit: 3
  failedJobsHistoryLimit: 3
  jobTemplate:
    spec:
      backoffLimit: 10
      podFailurePolicy:
        rules:
          - action: Count
            onExitCodes:
              operator: In
              values: [75, 130]
          - action: FailJob
            onExitCodes:
              operator: NotIn
              values: [0, 75, 130]
      template:
        spec:
          restartPolicy: Never
          terminationGracePeriodSeconds: 120
          containers:
            - name: bellwether
              image: \"bellwether:{version}\"
              command: [{command}]
              env:
                - name: BELLWETHER_API_KEY_FILE
                  value: /run/secrets/bellwether/api-key
              volumeMounts:
{mounts}                - name: api-key
                  mountPath: /run/secrets/bellwether
                  readOnly: true
          volumes:
            - name: project
              persistentVolumeClaim:
                claimName: bellwether
            - name: api-key
              secret:
                secretName: bellwether-api-key
                optional: true
",
        name = quote(&format!("bellwether-{}", label(&plan.name))),
        cron = quote(&CronDialect::Kubernetes.five_fields(plan, schedule)?),
        zone = quote(&schedule.timezone.to_string()),
        // Below ten seconds the controller may miss a time.
        catch_up = schedule.catch_up.as_secs().max(60),
        version = env!("CARGO_PKG_VERSION"),
        command = command.join(", "),
    ))
}

/// The longest part of a name that is kept. With what is before and after it, it is short enough for the names of jobs.
const LONGEST: usize = 33;

/// A name as the names of objects are spelled. If that takes a change, a part of the name's hash keeps it apart from others
/// that become the same.
fn label(name: &str) -> String {
    let mut spelled = name.to_ascii_lowercase().replace('_', "-");
    spelled.truncate(LONGEST);
    let spelled = spelled.trim_matches('-');
    if spelled == name {
        return spelled.to_owned();
    }
    let hash = blake3::hash(name.as_bytes()).to_hex();
    format!("{spelled}-{}", &hash[..6]).trim_start_matches('-').to_owned()
}
