//! `rl workstationpool usage`: the week of a pool, as tables by day, a chart by hour, and in the
//! forms that programs read.

mod chart;
mod days;

use std::str::FromStr;

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;

use super::failure::Exit;
use super::kinds;
use super::output;
use super::session::Session;
use crate::client::{ClientError, Target};
use crate::object::{UsageHour, WorkstationPoolUsage};

/// Whose week, and how.
#[derive(Debug, Args)]
pub struct UsageArgs {
    pool: String,
    /// table (by day, with a chart by hour), csv (by hour), json or yaml
    #[arg(short, long, value_name = "FORMAT", default_value = "table", hide_default_value = true)]
    output: Format,
}

/// What `-o` asks for.
#[derive(Clone, Copy, Debug)]
enum Format {
    Table,
    Csv,
    Json,
    Yaml,
}

impl FromStr for Format {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "table" => Ok(Self::Table),
            "csv" => Ok(Self::Csv),
            "json" => Ok(Self::Json),
            "yaml" => Ok(Self::Yaml),
            _ => Err("write table, csv, json or yaml"),
        }
    }
}

/// Prints the week.
pub async fn run(session: &Session, args: UsageArgs) -> anyhow::Result<Exit> {
    let pool = session.target(kinds::pools(&session.registry), &args.pool);
    let answer = match session.client.usage(&pool).await {
        Err(error) if error.is_not_found() => return Err(missing(session, &pool, error).await),
        answer => answer?,
    };
    let console = &session.console;
    match args.output {
        Format::Json => console.print(serde_json::to_string_pretty(&answer)?)?,
        Format::Yaml => console.print_raw(&output::yaml(&answer)?)?,
        Format::Csv => {
            let usage = typed(answer)?;
            console.print(head(&usage.wait_buckets_millis).join(","))?;
            usage.hours.iter().try_for_each(|hour| console.print(row(hour).join(",")))?;
        }
        Format::Table => print(session, &pool, &typed(answer)?)?,
    }
    Ok(Exit::DONE)
}

/// Rule U4: a pool that is there and has no usage is one of a control plane that keeps none.
async fn missing(session: &Session, pool: &Target, error: ClientError) -> anyhow::Error {
    match session.client.find(pool).await {
        Ok(Some(_)) => anyhow::anyhow!("this control plane keeps no usage store: {pool} has no history here"),
        Ok(None) => error.into(),
        Err(error) => error.into(),
    }
}

fn typed(answer: Value) -> anyhow::Result<WorkstationPoolUsage> {
    serde_json::from_value(answer).context("the daemon's usage is not understood: compare `rl version`")
}

fn print(session: &Session, pool: &Target, usage: &WorkstationPoolUsage) -> anyhow::Result<()> {
    let console = &session.console;
    let [Some(first), Some(last)] = [usage.hours.first(), usage.hours.last()] else {
        console.note(format_args!("{pool} has counted nothing yet"));
        return Ok(());
    };
    let lines = days::lines(&usage.hours).into_iter().chain(chart::lines(&usage.hours));
    lines.into_iter().try_for_each(|line| console.print(line))?;
    console.note(format_args!(
        "{pool} from {} to the present hour, {}, by days of UTC. HELD and WAITING are the most leases \
         at once, WAIT the mean from a lease's creation to its first Ready. Hours are those of all members together.",
        first.start, last.start
    ));
    Ok(())
}

/// The columns of csv: those of the API, and the waits by how long they took at most.
fn head(bounds_millis: &[u64]) -> Vec<String> {
    const FIXED: &str = "start,created,bound,heldMax,waitingMax,waitCount,waitSumMillis,waitMaxMillis,\
        expiredUnbound,done,recycled,recycleFailed,expired,memberLost,built,deleted,idleRunningSeconds,\
        idleStoppedSeconds,leasedSeconds,buildingSeconds,recyclingSeconds";
    let bounds = bounds_millis.iter().map(|bound| format!("waitUpTo{bound}Millis"));
    FIXED.split(',').map(str::to_owned).chain(bounds).chain(["waitLonger".to_owned()]).collect()
}

fn row(hour: &UsageHour) -> Vec<String> {
    let UsageHour { start, demand, endings, supply } = hour;
    let counts = [
        demand.created.into(),
        demand.bound.into(),
        demand.held_max.into(),
        demand.waiting_max.into(),
        demand.wait.count.into(),
        demand.wait.sum_millis,
        demand.wait.max_millis,
        demand.expired_unbound.into(),
        endings.done.into(),
        endings.recycled.into(),
        endings.recycle_failed.into(),
        endings.expired.into(),
        endings.member_lost.into(),
        supply.built.into(),
        supply.deleted.into(),
    ];
    let spent = [
        supply.idle_running_seconds,
        supply.idle_stopped_seconds,
        supply.leased_seconds,
        supply.building_seconds,
        supply.recycling_seconds,
    ];
    let seconds = |millis: u64| match millis % 1000 {
        0 => (millis / 1000).to_string(),
        rest => format!("{}.{rest:03}", millis / 1000),
    };
    std::iter::once(start.to_string())
        .chain(counts.iter().map(u64::to_string))
        .chain(spent.iter().map(|spent| seconds(spent.millis)))
        .chain(demand.wait.histogram.iter().map(u32::to_string))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{Spent, Time, WAIT_BUCKETS_MILLIS};

    #[test]
    fn a_row_of_csv_has_as_many_cells_as_its_head() {
        let mut hour = UsageHour { start: Time::from_millis(3_600_000), ..UsageHour::default() };
        hour.supply.leased_seconds = Spent { millis: 61_005 };
        let (head, row) = (head(&WAIT_BUCKETS_MILLIS), row(&hour));
        assert_eq!(head.len(), row.len());
        let cell = |name: &str| &row[head.iter().position(|column| column == name).expect("a column")];
        assert_eq!(
            (cell("start").as_str(), cell("leasedSeconds").as_str()),
            ("1970-01-01T01:00:00Z", "61.005")
        );
    }
}
