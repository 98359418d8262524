//! What the writers write: fixed in advance, so that what is on disk tells how far each one came.
//!
//! A writer has pairs of users. Each step writes both of a pair in one submission: it creates them,
//! changes them twice, removes them, and begins again with new ones of the same names. The first pair
//! is never removed. The text of a user is the number of the step that wrote it.

use super::super::*;

pub const WRITERS: usize = 8;
pub const PAIRS: u64 = 4;
/// Each step takes so many versions.
pub const WRITES_PER_STEP: u64 = 2;

/// Text that the second pair bears beside its number.
#[derive(Clone, Copy, Debug)]
pub struct Padding {
    pub bytes: usize,
}

/// Whose records a writer writes: owners of every kind.
pub fn owner(writer: usize) -> OwnerId {
    match writer {
        0 => OwnerId::Catalog,
        1 | 2 => OwnerId::Fleet(format!("space-{writer}")),
        _ => OwnerId::Pool(Ulid(writer as u128)),
    }
}

/// The submission of a step. Steps count from 1.
pub fn writes(writer: usize, step: u64, padding: Padding) -> Vec<Write> {
    let pair = pair_of(step);
    let writes = (0..2).map(|side| match text_after(step, pair) {
        Some(step) => {
            let filling = if pair == 1 { padding.bytes } else { 0 };
            let text = format!("{step} {}", "x".repeat(filling));
            put(uid(writer, step, side), &name(writer, pair, side), &text)
        }
        None => remove(uid(writer, step, side)),
    });
    writes.collect()
}

/// The two names that a step writes.
pub fn names(writer: usize, step: u64) -> [String; 2] {
    [0, 1].map(|side| name(writer, pair_of(step), side))
}

pub fn name(writer: usize, pair: u64, side: u64) -> String {
    format!("user-{writer}-{pair}-{side}")
}

/// The writer that has this name.
pub fn writer_of(name: &str) -> Option<usize> {
    name.strip_prefix("user-")?.split('-').next()?.parse().ok()
}

pub const fn pair_of(step: u64) -> u64 {
    (step - 1) % PAIRS
}

/// The last step until `step` that wrote the pair.
pub const fn last_of(step: u64, pair: u64) -> Option<u64> {
    if step <= pair { None } else { Some(step - (step - 1 - pair) % PAIRS) }
}

/// What the pair's users say after `step`; none while they are not there.
pub fn text_after(step: u64, pair: u64) -> Option<u64> {
    last_of(step, pair).filter(|last| pair == 0 || !(cycle_of(*last) + 1).is_multiple_of(4))
}

/// After which step the writer's users are as `text` finds them, by pair.
pub fn step_of(text: &[Option<u64>]) -> Option<u64> {
    let Some(first) = text[0] else { return text.iter().all(Option::is_none).then_some(0) };
    let is_after = |step: &u64| (0..PAIRS).zip(text).all(|(pair, text)| text_after(*step, pair) == *text);
    (first..first + PAIRS).find(is_after)
}

const fn cycle_of(step: u64) -> u64 {
    (step - 1) / PAIRS
}

/// New users for each time that they are created.
fn uid(writer: usize, step: u64, side: u64) -> u128 {
    let pair = pair_of(step);
    let place = (writer as u64 * PAIRS + pair) * 2 + side;
    let life = if pair == 0 { 0 } else { cycle_of(step) / 4 };
    u128::from(place) << 64 | u128::from(life + 1)
}

#[test]
fn what_the_writers_leave_tells_how_far_they_came() {
    for step in 0..100 {
        let text: Vec<Option<u64>> = (0..PAIRS).map(|pair| text_after(step, pair)).collect();
        assert_eq!(step_of(&text), Some(step), "{text:?}");
    }
    assert_eq!(step_of(&[Some(5), Some(2), Some(7), Some(4)]), None, "7 without 6");
}
