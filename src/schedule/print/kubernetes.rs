//! Kubernetes CronJobs, one per definition.

use super::{EXIT_CODES, Setup, quoted};
use crate::error::Result;
use crate::plan::{Plan, Schedule};

pub(super) fn jobs(setup: &Setup) -> Result<String> {
    let mut text = format!(
        "\
# Apply with `kubectl apply -f FILE`, after these:
#   kubectl create secret generic bellwether-api-key --from-file=api-key=PATH
#   a PersistentVolumeClaim `bellwether` with the project, mounted at {root}
#   an image `bellwether:{version}` with the program at {program}
{EXIT_CODES}\
# A pod that ends with 75 or 130 is started again, up to ten times; any other failure ends the job.
",
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
    let words = setup.words(&["run", &plan.name, "--wait", "--log", "json"]);
    let command: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    let mut volumes = vec![setup.root.to_string_lossy().into_owned()];
    for (number, folder) in [&setup.data, &setup.archive].into_iter().enumerate() {
        if !folder.starts_with(&setup.root) && (number == 0 || !folder.starts_with(&setup.data)) {
            volumes.push(folder.to_string_lossy().into_owned());
        }
    }
    let mounts: String = volumes
        .iter()
        .enumerate()
        .map(|(number, path)| {
            let subpath =
                if number == 0 { String::new() } else { format!("\n                  subPath: part-{number}") };
            format!("                - name: project\n                  mountPath: {}{subpath}\n", quoted(path))
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
        name = quoted(&format!("bellwether-{}", label(&plan.name))),
        cron = quoted(&Setup::five_fields(plan, schedule, "Kubernetes")?),
        zone = quoted(&schedule.timezone.to_string()),
        // Below ten seconds the controller may miss a time.
        catch_up = schedule.catch_up.as_secs().max(60),
        version = env!("CARGO_PKG_VERSION"),
        command = command.join(", "),
    ))
}

/// A name as the names of objects are spelled, short enough for those of its jobs.
fn label(name: &str) -> String {
    let spelled = name.to_ascii_lowercase().replace('_', "-");
    spelled.chars().take(40).collect::<String>().trim_end_matches('-').to_owned()
}
