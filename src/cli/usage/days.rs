//! The week by days of UTC: what was asked, how it ended, what there was. Three tables, since one
//! would be wider than a terminal.

use super::super::output::age;
use super::super::output::table::Table;
use crate::object::{Spent, UsageHour};

/// The tables, an empty line between them.
pub fn lines(hours: &[UsageHour]) -> Vec<String> {
    let mut week = UsageHour::default();
    for hour in hours {
        week.join(hour);
    }
    let days: Vec<_> = by_day(hours).into_iter().chain([("week".to_owned(), week)]).collect();
    let tables = [
        table("demand", ["leases", "bound", "held", "waiting", "wait", "longest", "expired"], &days, demand),
        table("endings", ["done", "recycled", "recycle failed", "expired", "member lost"], &days, endings),
        table(
            "supply",
            ["built", "deleted", "idle", "stopped", "leased", "building", "recycling"],
            &days,
            supply,
        ),
    ];
    tables.into_iter().flat_map(|mut table| table.lines().into_iter().chain([String::new()])).collect()
}

/// The hours of each day together.
fn by_day(hours: &[UsageHour]) -> Vec<(String, UsageHour)> {
    let mut days: Vec<(String, UsageHour)> = Vec::new();
    for hour in hours {
        let date = hour.start.to_string().chars().take(10).collect();
        match days.last_mut().filter(|(last, _)| *last == date) {
            Some((_, day)) => day.join(hour),
            None => days.push((date, hour.clone())),
        }
    }
    days
}

fn table<const N: usize>(
    title: &str,
    head: [&str; N],
    days: &[(String, UsageHour)],
    cells: fn(&UsageHour) -> [String; N],
) -> Table {
    let mut table = Table::new([title].into_iter().chain(head));
    for (day, hours) in days {
        table.row([day.clone()].into_iter().chain(cells(hours)));
    }
    table
}

fn demand(UsageHour { demand, .. }: &UsageHour) -> [String; 7] {
    let mean = demand.wait.sum_millis.checked_div(demand.wait.count.into());
    [
        demand.created.to_string(),
        demand.bound.to_string(),
        demand.held_max.to_string(),
        demand.waiting_max.to_string(),
        mean.map_or_else(|| "-".into(), wait),
        mean.map_or_else(|| "-".into(), |_| wait(demand.wait.max_millis)),
        demand.expired_unbound.to_string(),
    ]
}

fn endings(UsageHour { endings, .. }: &UsageHour) -> [String; 5] {
    let counts =
        [endings.done, endings.recycled, endings.recycle_failed, endings.expired, endings.member_lost];
    counts.map(|count| count.to_string())
}

fn supply(UsageHour { supply, .. }: &UsageHour) -> [String; 7] {
    [
        supply.built.to_string(),
        supply.deleted.to_string(),
        spent(supply.idle_running_seconds),
        spent(supply.idle_stopped_seconds),
        spent(supply.leased_seconds),
        spent(supply.building_seconds),
        spent(supply.recycling_seconds),
    ]
}

/// How long somebody waited.
fn wait(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis}ms"),
        1_000..60_000 => format!("{}.{}s", millis / 1000, millis % 1000 / 100),
        _ => age::duration(i64::try_from(millis).unwrap_or(i64::MAX)),
    }
}

/// Time of members together: of a day it is more than its 24 hours.
fn spent(Spent { millis }: Spent) -> String {
    let seconds = millis / 1000;
    match seconds {
        0 if millis > 0 => "<1s".into(),
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        _ => format!("{}.{}h", seconds / 3_600, seconds % 3_600 / 360),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Time;

    fn hour(start: &str, created: u32) -> UsageHour {
        let mut hour = UsageHour { start: Time::parse(start).expect("a time"), ..UsageHour::default() };
        hour.demand.created = created;
        hour.demand.held_max = created;
        hour.supply.idle_running_seconds = Spent { millis: 2 * 3_600_000 };
        hour
    }

    #[test]
    fn hours_are_told_as_days_and_the_week() {
        let hours = [
            hour("2026-12-01T22:00:00Z", 1),
            hour("2026-12-01T23:00:00Z", 3),
            hour("2026-12-02T00:00:00Z", 2),
        ];
        let lines = lines(&hours);
        assert_eq!(
            lines[..4],
            [
                "DEMAND       LEASES   BOUND   HELD   WAITING   WAIT   LONGEST   EXPIRED",
                "2026-12-01   4        0       3      0         -      -         0",
                "2026-12-02   2        0       2      0         -      -         0",
                "week         6        0       3      0         -      -         0",
            ]
        );
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
        assert!(
            lines.iter().any(|line| line.starts_with("2026-12-01   0       0         4.0h")),
            "{lines:#?}"
        );
    }

    #[test]
    fn times_are_short() {
        assert_eq!([wait(41), wait(1_290), wait(184_000)], ["41ms", "1.2s", "3m4s"]);
        let of = |seconds: u64| spent(Spent { millis: seconds * 1000 });
        assert_eq!([of(0), of(59), of(60), of(5_400), of(604_800)], ["0s", "59s", "1m", "1.5h", "168.0h"]);
        assert_eq!(spent(Spent { millis: 300 }), "<1s");
    }
}
