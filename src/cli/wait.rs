//! `rl wait`: until an object is as it should be.

use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use serde_json::Value;
use tokio::time::Instant;

use super::console::Progress;
use super::failure::{Exit, usage};
use super::kinds::Selection;
use super::output::jsonpath::JsonPath;
use super::output::text_at;
use super::session::Session;
use crate::client::{Change, Follow, Target};
use crate::object::{Kind, Span};

/// Until when.
#[derive(Debug, Default, Args)]
pub struct WaitOptions {
    /// Ready, Deleted, condition=NAME[=False], a phase, or jsonpath=PATH=VALUE
    #[arg(long = "for", value_name = "WHAT")]
    until: Option<Until>,
    /// Give up after so long, such as 90s or 10m [default: never]
    #[arg(long, value_name = "DURATION")]
    timeout: Option<Span>,
}

/// What is waited for.
#[derive(Clone, Debug)]
pub enum Until {
    Deleted,
    /// These conditions, each with the status it should have.
    Conditions(Vec<(String, String)>),
    Phase(String),
    JsonPath(JsonPath, String),
}

impl FromStr for Until {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(condition) = text.strip_prefix("condition=") {
            let (name, status) = condition.split_once('=').unwrap_or((condition, "True"));
            return Ok(Self::Conditions(vec![(name.to_owned(), capitalised(status))]));
        }
        if let Some(path) = text.strip_prefix("jsonpath=") {
            // The value follows the last `=` outside the braces; a filter has some of its own.
            let cut = path.rfind('}').map_or(0, |brace| brace + 1);
            let at = path[cut..]
                .find('=')
                .ok_or("write jsonpath=PATH=VALUE, such as jsonpath={.status.phase}=Ready")?;
            let (path, value) = (&path[..cut + at], &path[cut + at + 1..]);
            return Ok(Self::JsonPath(path.parse()?, value.to_owned()));
        }
        match text.to_ascii_lowercase().as_str() {
            "delete" | "deleted" => Ok(Self::Deleted),
            "" => Err("write Ready, Deleted, condition=NAME, a phase, or jsonpath=PATH=VALUE".into()),
            _ if text.contains('=') => {
                Err(format!("{text:?}: only condition=NAME and jsonpath=PATH=VALUE have a ="))
            }
            _ => Ok(Self::Phase(capitalised(text))),
        }
    }
}

/// `ready` and `READY` are `Ready`; what has an inner capital is left as typed.
fn capitalised(word: &str) -> String {
    let uniform = word.chars().all(char::is_lowercase) || word.chars().all(char::is_uppercase);
    let mut rest = word.chars();
    match rest.next() {
        Some(first) if uniform => first.to_uppercase().chain(rest.flat_map(char::to_lowercase)).collect(),
        _ => word.to_owned(),
    }
}

/// How an object stands against what is waited for.
#[derive(Debug, PartialEq, Eq)]
enum Standing {
    Met,
    /// Not yet: what is missing.
    Waiting(String),
    /// It never will be.
    Lost(String),
}

/// Waits for each selected object in turn, all within the timeout.
pub async fn run(
    session: &Session,
    selections: Vec<Selection>,
    options: WaitOptions,
) -> anyhow::Result<Exit> {
    let targets: Vec<Target> = selections
        .iter()
        .flat_map(|selection| selection.names.iter().map(|name| session.target(selection.kind, name)))
        .collect();
    if targets.is_empty() {
        return Err(usage("say which: write KIND NAME"));
    }
    let deadline = options.timeout.as_ref().map(|timeout| (timeout, Instant::now() + duration(timeout)));
    for target in &targets {
        let until = options.until.clone().map_or_else(|| usual(target.kind), Ok)?;
        let mut progress = session.console.progress();
        let wait = wait_for(session, target, &until, &mut progress);
        let over = match deadline {
            None => Ok(wait.await),
            Some((timeout, at)) => tokio::time::timeout_at(at, wait).await.map_err(|_| timeout),
        };
        drop(progress);
        over.unwrap_or_else(|timeout| Err(in_vain(target, &until, timeout)))?;
        session.console.print(format_args!("{target} {}", met(&until)))?;
    }
    Ok(Exit::DONE)
}

fn in_vain(target: &Target, until: &Until, timeout: &Span) -> anyhow::Error {
    let what = match until {
        Until::Deleted => "deleted".to_owned(),
        Until::Phase(phase) => phase.clone(),
        Until::Conditions(conditions) => {
            conditions.iter().map(|(name, status)| format!("{name}={status}")).collect::<Vec<_>>().join(", ")
        }
        Until::JsonPath(_, value) => format!("{value:?}"),
    };
    let Target { kind, name, namespace } = target;
    let flag = namespace.as_ref().map(|namespace| format!(" -n {namespace}")).unwrap_or_default();
    anyhow::anyhow!(
        "{target} was not {what} within {timeout}: `rl describe {} {name}{flag}` shows what it waits for",
        kind.singular
    )
}

/// A span as the runtime's duration.
pub fn duration(span: &Span) -> Duration {
    Duration::from_millis(u64::try_from(span.millis()).unwrap_or(0))
}

/// What is waited for without --for (rule S2).
fn usual(kind: &Kind) -> anyhow::Result<Until> {
    let conditions = |names: &[&str]| {
        Ok(Until::Conditions(names.iter().map(|name| ((*name).to_owned(), "True".to_owned())).collect()))
    };
    match kind.singular {
        "workstationpool" => conditions(&["TemplateHealthy", "RoomAvailable", "WarmFloorsFilled"]),
        "workstationpoollease" => Ok(Until::Phase("Ready".into())),
        "workstation" => conditions(&["Ready", "Configured"]),
        other => Err(usage(format!("a {other} is never waited for without --for, as in --for Deleted"))),
    }
}

fn met(until: &Until) -> String {
    match until {
        Until::Deleted => "deleted".into(),
        Until::Phase(phase) => phase.clone(),
        Until::Conditions(_) | Until::JsonPath(..) => "condition met".into(),
    }
}

/// Waits for one object.
pub async fn wait_for(
    session: &Session,
    target: &Target,
    until: &Until,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let Some(mut object) = session.client.find(target).await? else {
        if matches!(until, Until::Deleted) {
            return Ok(());
        }
        // Said with the words of the server's refusal.
        session.client.get(target).await?;
        return Ok(());
    };
    let mut follow = Follow::object(&session.client, target, object.clone());
    loop {
        match standing(until, &object) {
            Standing::Met => return Ok(()),
            Standing::Waiting(missing) => progress.say(format!("{target}: {missing}")),
            Standing::Lost(why) => anyhow::bail!("{target} {why}"),
        }
        let event = follow.next().await?;
        if event.change == Change::Deleted {
            return match until {
                Until::Deleted => Ok(()),
                Until::Conditions(_) | Until::Phase(_) | Until::JsonPath(..) => {
                    Err(anyhow::anyhow!("{target} is gone{}", target.in_namespace()))
                }
            };
        }
        object = event.object;
    }
}

fn standing(until: &Until, object: &Value) -> Standing {
    let phase = text_at(object, "/status/phase");
    match until {
        Until::Deleted if object.pointer("/metadata/deletionTimestamp").is_some() => {
            Standing::Waiting(described(object, "deleting"))
        }
        Until::Deleted => Standing::Waiting("nobody has deleted it yet".into()),
        Until::Phase(wanted) if phase == wanted => Standing::Met,
        // `Ready` is a condition where the kind has no such phase, as with standalone tools.
        Until::Phase(wanted) if condition(object, wanted) == Some("True") => Standing::Met,
        Until::Phase(_) if phase == "Failed" => Standing::Lost(failed(object)),
        Until::Phase(_) => Standing::Waiting(described(object, phase)),
        Until::Conditions(wanted) => {
            let missing: Vec<String> = wanted
                .iter()
                .filter(|(name, status)| condition(object, name) != Some(status))
                .map(|(name, _)| unmet(object, name))
                .collect();
            if missing.is_empty() { Standing::Met } else { Standing::Waiting(missing.join("; ")) }
        }
        Until::JsonPath(path, value) => {
            let found = path.render(object);
            if found == *value {
                Standing::Met
            } else {
                Standing::Waiting(format!("{found:?} is not yet {value:?}"))
            }
        }
    }
}

/// The status of a condition, unless it was judged for an older generation.
fn condition<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    let found = find_condition(object, name)?;
    let judged = found.get("observedGeneration").and_then(Value::as_i64);
    let present = object.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0);
    (judged.is_none_or(|judged| judged >= present)).then(|| text_at(found, "/status"))
}

fn find_condition<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|condition| text_at(condition, "/type").eq_ignore_ascii_case(name))
}

fn unmet(object: &Value, name: &str) -> String {
    let said = find_condition(object, name).map(|found| text_at(found, "/message")).unwrap_or_default();
    if said.is_empty() { format!("{name} is not so yet") } else { format!("{name}: {said}") }
}

fn described(object: &Value, phase: &str) -> String {
    match text_at(object, "/status/message") {
        "" => phase.to_owned(),
        message => format!("{phase}: {message}"),
    }
}

/// Why an object is Failed, in its own words.
pub fn failed(object: &Value) -> String {
    let (reason, message) = (text_at(object, "/status/reason"), text_at(object, "/status/message"));
    let words: Vec<&str> = ["Failed", reason, message].into_iter().filter(|word| !word.is_empty()).collect();
    words.join(": ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stands(until: &str, object: &Value) -> Standing {
        standing(&until.parse().expect("something to wait for"), object)
    }

    #[test]
    fn each_form_of_for_is_judged() {
        let object = json!({
            "metadata": {"generation": 2},
            "status": {"phase": "Pending", "message": "every member is leased", "conditions": [
                {"type": "Bound", "status": "False", "observedGeneration": 2},
                {"type": "Ready", "status": "True", "observedGeneration": 1, "message": "as it was"}]},
        });
        assert_eq!(stands("pending", &object), Standing::Met);
        assert_eq!(stands("Ready", &object), Standing::Waiting("Pending: every member is leased".into()));
        assert_eq!(stands("condition=Bound=false", &object), Standing::Met);
        // Judged for an older spec: not an answer yet.
        assert_eq!(stands("condition=Ready", &object), Standing::Waiting("Ready: as it was".into()));
        assert_eq!(stands("jsonpath={.status.phase}=Pending", &object), Standing::Met);
        let filter = r#"jsonpath={.status.conditions[?(@.type=="Bound")].status}=False"#;
        assert_eq!(stands(filter, &object), Standing::Met);
        assert!(matches!(stands("Deleted", &object), Standing::Waiting(_)));
    }

    // rule S2
    #[test]
    fn a_failed_lease_ends_the_wait_with_its_reason() {
        let lease = json!({"status": {"phase": "Failed", "reason": "Expired", "message": "its term ended"}});
        assert_eq!(stands("Ready", &lease), Standing::Lost("Failed: Expired: its term ended".into()));
        assert_eq!(stands("Failed", &lease), Standing::Met);
    }
}
