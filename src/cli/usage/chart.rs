//! The week drawn: a line a day, a cell an hour, as high as the most leases at once.

use crate::object::UsageHour;

/// From one eighth to the whole.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Nobody, in an hour that is on record.
const NOBODY: char = '·';

/// How many held a member and, where anybody had to, how many waited.
pub fn lines(hours: &[UsageHour]) -> Vec<String> {
    let mut lines = chart(hours, "Most leases held at once", |hour| hour.demand.held_max);
    if hours.iter().any(|hour| hour.demand.waiting_max > 0) {
        lines.push(String::new());
        lines.extend(chart(hours, "Most leases waiting at once", |hour| hour.demand.waiting_max));
    }
    lines
}

fn chart(hours: &[UsageHour], title: &str, of: fn(&UsageHour) -> u32) -> Vec<String> {
    let most = hours.iter().map(of).max().unwrap_or(0);
    let mut lines = vec![
        format!("{title}, by hour of UTC (█ is {most})"),
        "             00    06    12    18".to_owned(),
    ];
    let mut days: Vec<(String, [char; 24])> = Vec::new();
    for hour in hours {
        let start = hour.start.to_string();
        let (date, time) = start.split_once('T').unwrap_or((&start, ""));
        if days.last().is_none_or(|(last, _)| last != date) {
            days.push((date.to_owned(), [' '; 24]));
        }
        let at: Option<usize> = time.get(..2).and_then(|number| number.parse().ok());
        let cell = days.last_mut().zip(at).and_then(|((_, cells), at)| cells.get_mut(at));
        if let Some(cell) = cell {
            *cell = block(of(hour), most);
        }
    }
    let line = |(date, cells): (String, [char; 24])| format!("{date}   {}", String::from_iter(cells));
    lines.extend(days.into_iter().map(|day| line(day).trim_end().to_owned()));
    lines
}

fn block(count: u32, most: u32) -> char {
    match (u64::from(count) * 8).div_ceil(u64::from(most).max(1)) {
        0 => NOBODY,
        eighths => usize::try_from(eighths - 1).ok().and_then(|at| BLOCKS.get(at)).copied().unwrap_or('█'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Time;

    #[test]
    fn a_cell_is_as_high_as_its_hour_and_empty_where_none_is_on_record() {
        let held = [("2026-12-01T22:00:00Z", 8), ("2026-12-01T23:00:00Z", 1), ("2026-12-02T02:00:00Z", 0)];
        let hours = held.map(|(start, held)| {
            let mut hour = UsageHour { start: Time::parse(start).expect("a time"), ..UsageHour::default() };
            hour.demand.held_max = held;
            hour
        });
        assert_eq!(
            lines(&hours),
            [
                "Most leases held at once, by hour of UTC (█ is 8)",
                "             00    06    12    18",
                "2026-12-01                         █▁",
                "2026-12-02     ·",
            ]
        );
    }

    #[test]
    fn whoever_is_there_is_seen_however_many_others_were() {
        assert_eq!(
            [block(0, 0), block(0, 9), block(1, 1000), block(5, 9), block(9, 9)],
            ['·', '·', '▁', '▅', '█']
        );
    }
}
