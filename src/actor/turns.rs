//! Whose turn it is to build: one small book for all owners of the daemon (rule F4).
//!
//! Builds in flight are bounded over the whole daemon. Who takes the last place of a plain counter
//! keeps it while its machines hang, and everybody else waits for them; so an owner may begin
//! another build only while its own are fewer than twice the places that are free. One owner alone
//! comes to about three quarters of the places, and a newcomer nearly always finds one. (The rule
//! by which switches share their buffers among ports; Choudhury and Hahne, 1998.)
//!
//! An owner asks before each act of a pass, and what it is offered is set aside until it says how
//! many builds it has then: two arbiters cannot both take the last place. Who finds none waits in
//! line; places that come free are called out to those who have waited longest, and are kept for
//! them from whoever merely passes by.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::object::{POOL_LABEL, SERVER_PREFIX, WORKSTATIONS_GROUP};
use crate::store::OwnerId;
use crate::view::{Key, Resource, View};

/// The book. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Turns(Arc<Mutex<Book>>);

/// What an owner would do with a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    Build,
    Nothing,
}

#[derive(Debug)]
struct Book {
    most: u32,
    shares: HashMap<OwnerId, Share>,
    /// Who waits for a turn, the longest first.
    line: Vec<OwnerId>,
    /// Places were taken or given back, and nobody was called since. Either may make another one of
    /// the line the next: who is called may find that it is no longer for it to build.
    changed: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Share {
    building: u32,
    /// Set aside while the owner decides: 0 or 1.
    offered: u32,
}

impl Turns {
    /// A book of `most` places, with the builds that were in flight when the daemon started.
    #[must_use]
    pub fn new(most: u32, in_flight: HashMap<OwnerId, u32>) -> Self {
        let share = |(owner, building)| (owner, Share { building, offered: 0 });
        let shares = in_flight.into_iter().map(share).collect();
        Self(Arc::new(Mutex::new(Book { most, shares, line: Vec::new(), changed: false })))
    }

    /// How many builds `owner`, which has `building` now, may begin before it asks again: one, set
    /// aside for it until its [`Self::note`], or none.
    #[must_use]
    pub fn offer(&self, owner: &OwnerId, building: u32) -> u32 {
        let mut book = self.book();
        book.set(owner, Share { building, offered: 0 });
        let offered = u32::from(book.is_next(owner));
        book.set(owner, Share { building, offered });
        offered
    }

    /// `owner` has decided, has `building` builds now, and would begin more or not. Answers who
    /// should look at their turn again.
    #[must_use]
    pub fn note(&self, owner: &OwnerId, building: u32, wish: Wish) -> Vec<OwnerId> {
        let mut book = self.book();
        book.set(owner, Share { building, offered: 0 });
        let (stood, stands) = (book.line.contains(owner), wish == Wish::Build);
        match (stood, stands) {
            (false, true) => book.line.push(owner.clone()),
            (true, false) => book.line.retain(|waiting| waiting != owner),
            (true, true) | (false, false) => {}
        }
        if std::mem::take(&mut book.changed) || stood != stands { book.called() } else { Vec::new() }
    }

    /// `owner` is no more. Answers who should look at their turn again.
    #[must_use]
    pub fn forget(&self, owner: &OwnerId) -> Vec<OwnerId> {
        let called = self.note(owner, 0, Wish::Nothing);
        self.book().shares.remove(owner);
        called
    }

    /// Another number of places, from now on. Builds under way keep theirs. Answers who should look
    /// at their turn again.
    #[must_use]
    pub fn resize(&self, most: u32) -> Vec<OwnerId> {
        let mut book = self.book();
        book.most = most;
        book.called()
    }

    /// No call leaves the book half written: every change is one assignment.
    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    const fn places(self) -> u32 {
        self.building.saturating_add(self.offered)
    }
}

impl Book {
    fn set(&mut self, owner: &OwnerId, share: Share) {
        let before = match self.shares.get_mut(owner) {
            Some(place) => std::mem::replace(place, share),
            None => self.shares.insert(owner.clone(), share).unwrap_or_default(),
        };
        self.changed |= share.places() != before.places();
    }

    fn in_flight(&self) -> u32 {
        self.shares.values().map(|share| share.places()).sum()
    }

    fn may_begin(&self, owner: &OwnerId) -> bool {
        let share = self.shares.get(owner).copied().unwrap_or_default();
        may_begin(share.places(), self.in_flight(), self.most)
    }

    /// Whether a place is free for `owner` that nobody before it in the line can use.
    fn is_next(&self, owner: &OwnerId) -> bool {
        let before = self.line.iter().take_while(|waiting| *waiting != owner);
        let kept = before.filter(|waiting| self.may_begin(waiting)).count();
        self.may_begin(owner) && kept < self.free()
    }

    /// Those in the line for whom there is a place.
    fn called(&self) -> Vec<OwnerId> {
        self.line.iter().filter(|waiting| self.may_begin(waiting)).take(self.free()).cloned().collect()
    }

    fn free(&self) -> usize {
        self.most.saturating_sub(self.in_flight()) as usize
    }
}

/// The builds that were under way when the daemon stopped, by owner, as the view shows them: so that
/// who is started first does not find every place free. Each owner's own word replaces it.
#[must_use]
pub fn in_flight(view: &View) -> HashMap<OwnerId, u32> {
    let mut builds = HashMap::new();
    for workstation in &view.list(WORKSTATIONS_GROUP, "workstations", None).items {
        if let Some(owner) = builder(workstation, view) {
            *builds.entry(owner).or_default() += 1;
        }
    }
    builds
}

/// Whose build this workstation is, if it is being built.
fn builder(workstation: &Resource, view: &View) -> Option<OwnerId> {
    let metadata = workstation.value.get("metadata")?;
    let text = |map: &str, key: &str| metadata.get(map)?.get(key)?.as_str();
    let namespace = workstation.key.namespace.clone();
    let Some(pool) = text("labels", POOL_LABEL) else {
        let phase = workstation.value.pointer("/status/phase")?.as_str()?;
        return matches!(phase, "Provisioning" | "Configuring").then_some(OwnerId::Fleet(namespace));
    };
    let key = Key { plural: "workstationpools", name: pool.to_owned(), ..workstation.key.clone() };
    let state = text("annotations", &format!("{SERVER_PREFIX}state"))?;
    view.get(&key).filter(|_| state == "Building").map(|pool| OwnerId::Pool(pool.uid))
}

/// Whether an owner with `own` of the `in_flight` builds may begin another, of `most` at once.
#[must_use]
pub const fn may_begin(own: u32, in_flight: u32, most: u32) -> bool {
    own < most.saturating_sub(in_flight).saturating_mul(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(number: u64) -> OwnerId {
        OwnerId::Pool(ulid::Ulid::from_parts(number, 0))
    }

    fn book(most: u32) -> Turns {
        Turns::new(most, HashMap::new())
    }

    /// `owner` begins as many builds as it is offered, and stays in line for more.
    fn take_all(turns: &Turns, owner: &OwnerId, mut building: u32) -> u32 {
        while turns.offer(owner, building) == 1 {
            building += 1;
        }
        assert_eq!(turns.note(owner, building, Wish::Build), []);
        building
    }

    // rule F4
    #[test]
    fn one_alone_comes_to_three_quarters_and_leaves_a_turn_for_a_newcomer() {
        let greedy = |most| {
            let mut own = 0;
            while may_begin(own, own, most) {
                own += 1;
            }
            own
        };
        assert_eq!([1, 2, 3, 4, 8, 16, 64].map(greedy), [1, 2, 2, 3, 6, 11, 43]);
        for most in 3..200 {
            assert!(may_begin(0, greedy(most), most), "a newcomer beside {} of {most}", greedy(most));
        }
    }

    // rule F4
    #[test]
    fn never_more_than_there_are_places_for_however_many_ask() {
        for most in 0..40_u32 {
            let mut own = [0_u32; 7];
            while let Some(next) = (0..7).find(|next| may_begin(own[*next], own.iter().sum(), most)) {
                own[next] += 1;
            }
            assert!(own.iter().sum::<u32>() <= most, "{own:?} of {most}");
        }
    }

    // rule F4
    #[test]
    fn a_place_that_comes_free_is_the_one_s_who_has_waited_longest() {
        let turns = book(2);
        let [first, second, third, fourth] = [1, 2, 3, 4].map(pool);
        assert_eq!(take_all(&turns, &first, 0), 2);
        assert_eq!(take_all(&turns, &second, 0), 0);
        assert_eq!(take_all(&turns, &third, 0), 0);
        let called = turns.note(&first, 1, Wish::Nothing);
        assert_eq!(called, std::slice::from_ref(&second), "one place, one call");
        assert_eq!(turns.offer(&fourth, 0), 0, "it is kept from who passes by");
        assert_eq!(turns.offer(&third, 0), 0, "and from who came later");
        assert_eq!(turns.offer(&second, 0), 1);
        assert_eq!(turns.note(&second, 1, Wish::Nothing), [], "taken");
        assert_eq!(turns.note(&first, 0, Wish::Nothing), [third]);
    }

    // rule F4
    #[test]
    fn who_no_longer_wants_its_turn_or_is_no_more_lets_the_next_one_pass() {
        let turns = book(1);
        let [first, second, third] = [1, 2, 3].map(pool);
        assert_eq!(take_all(&turns, &first, 0), 1);
        assert_eq!(take_all(&turns, &second, 0), 0);
        assert_eq!(take_all(&turns, &third, 0), 0);
        assert_eq!(turns.forget(&first), std::slice::from_ref(&second));
        assert_eq!(turns.note(&second, 0, Wish::Nothing), [third]);
    }

    // rule F4
    #[test]
    fn what_is_offered_is_set_aside_until_it_is_known_whether_it_was_taken() {
        let turns = book(1);
        let [first, second] = [1, 2].map(pool);
        assert_eq!(turns.offer(&first, 0), 1);
        assert_eq!(turns.offer(&second, 0), 0);
        assert_eq!(turns.note(&second, 0, Wish::Build), []);
        let called = turns.note(&first, 0, Wish::Nothing);
        assert_eq!(called, std::slice::from_ref(&second), "it was not");
        assert_eq!(turns.offer(&second, 0), 1);
    }

    // rule F4
    #[test]
    fn a_place_given_back_while_asking_for_the_next_is_called_out_too() {
        let turns = book(1);
        let [first, second] = [1, 2].map(pool);
        assert_eq!(take_all(&turns, &first, 0), 1);
        assert_eq!(take_all(&turns, &second, 0), 0);
        // The first pool's build has ended; it asks for another turn, and the second one's is next.
        assert_eq!(turns.note(&first, 1, Wish::Nothing), []);
        assert_eq!(turns.offer(&first, 0), 0);
        assert_eq!(turns.note(&first, 0, Wish::Build), [second]);
    }

    proptest::proptest! {
        /// Owners wish, build and end in any order, and each looks again when it is called: nobody
        /// waits while there is a place for it.
        // rule F4
        #[test]
        fn nobody_waits_for_a_place_that_is_free(
            most in 1..12_u32,
            steps in proptest::collection::vec((0..5_usize, 0..3_u8), 0..60),
        ) {
            let turns = book(most);
            let (mut building, mut wished) = ([0_u32; 5], [0_u32; 5]);
            for (owner, step) in steps {
                match step {
                    0 => wished[owner] += 3,
                    1 => building[owner] = building[owner].saturating_sub(1),
                    _ => wished[owner] = 0,
                }
                let mut called = std::collections::VecDeque::from([owner]);
                while let Some(owner) = called.pop_front() {
                    let id = pool(owner as u64);
                    while turns.offer(&id, building[owner]) == 1 && wished[owner] > 0 {
                        wished[owner] -= 1;
                        building[owner] += 1;
                    }
                    let wish = if wished[owner] > 0 { Wish::Build } else { Wish::Nothing };
                    let next = turns.note(&id, building[owner], wish);
                    called.extend((0..5).filter(|other| next.contains(&pool(*other as u64))));
                }
                let in_flight = building.iter().sum();
                proptest::prop_assert!(in_flight <= most);
                for owner in 0..5 {
                    let waits = wished[owner] > 0 && may_begin(building[owner], in_flight, most);
                    proptest::prop_assert!(!waits, "{owner} waits: {building:?} {wished:?} of {most}");
                }
            }
        }
    }

    // rule F4
    #[test]
    fn more_places_are_called_out_and_fewer_take_nothing_away() {
        let turns = Turns::new(1, HashMap::from([(pool(1), 1)]));
        assert_eq!(take_all(&turns, &pool(2), 0), 0);
        assert_eq!(turns.resize(0), []);
        assert_eq!(turns.resize(4), [pool(2)]);
    }
}
