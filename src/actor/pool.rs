//! A pool behind the shell of an owner.

use super::catalog::device_keys;
use super::core::{Core, Decided, Reading, Sources};
use super::doors::{Refusal, Write};
use super::placement;
use super::reading::{Judged, Judgement, Present, invalid, judge, typed};
use crate::machine::{Fact, Want};
use crate::object::{CORE_GROUP, Subject, SubjectKind, Tick, Time, WorkstationPool};
use crate::pool::{
    Act, Answer, Change, Command, Decision, Denied, Happening, Inputs, OwnerKeys, Pool, ProviderState,
    Resetting, Room, Standing, StatusWrite, Stopping, happenings,
};
use crate::provider::Availability;
use crate::store::{self, OwnerId, Record, RecordId, RecordKind};
use crate::view::{Key, Resource};

/// A pool, or the place where one is about to be.
pub struct PoolCore {
    uid: ulid::Ulid,
    pool: Option<Pool>,
}

/// What a pool's owner is asked or told.
#[expect(clippy::large_enum_variant, reason = "commands pass through, one at a time")]
pub enum PoolCommand {
    Create { object: Box<WorkstationPool>, by: Subject },
    Pool(Command),
}

impl Core for PoolCore {
    type Command = PoolCommand;
    type Change = Change;
    type Inputs = Inputs;

    fn load(owner: &OwnerId, records: Vec<Record>) -> Self {
        let OwnerId::Pool(uid) = owner else { return Self { uid: ulid::Ulid::nil(), pool: None } };
        let (mut row, mut leases, mut members, mut events) = (None, Vec::new(), Vec::new(), Vec::new());
        for record in records {
            match record {
                Record::Pool(pool) => row = Some(pool),
                Record::Lease(lease) => leases.push(lease),
                Record::Member(member) => members.push(member),
                Record::Event(event) => events.push(event),
                Record::Namespace(_) | Record::User(_) | Record::Device(_) | Record::Station(_) => {}
            }
        }
        Self { uid: *uid, pool: row.map(|row| Pool::load(row, leases, members, events)) }
    }

    fn read(&self, write: &Write, tick: &Tick, sources: &Sources) -> Result<Reading<PoolCommand>, Refusal> {
        let key = Key::new(write.kind, write.namespace.as_deref(), write.verb.name());
        let old = self.present(write, sources.view.get(&key).as_deref());
        let mut judgement = judge(write, old.as_ref(), tick)?;
        if let Judged::Create(value) = &mut judgement.judged
            && write.kind.kind == "WorkstationPool"
        {
            // The actor was started under this uid before the object existed.
            value["metadata"]["uid"] = self.uid.to_string().into();
        }
        let created = match &judgement.judged {
            Judged::Create(value) => {
                value.pointer("/metadata/name").and_then(|name| name.as_str()).map(str::to_owned)
            }
            Judged::Update(_) | Judged::Delete => None,
        };
        let key = created.map_or(key, |name| Key::new(write.kind, write.namespace.as_deref(), &name));
        let creates = matches!(judgement.judged, Judged::Create(_));
        let Judgement { judged, warnings, expected_version } = judgement;
        let command = self.command(write, judged, old.map(|old| old.uid).unwrap_or_default(), sources)?;
        Ok(Reading { command, key, creates, expected_version, warnings })
    }

    fn heard(fact: Fact) -> PoolCommand {
        PoolCommand::Pool(Command::Fact(fact))
    }

    fn pass() -> PoolCommand {
        PoolCommand::Pool(Command::Pass)
    }

    fn decide(&self, command: PoolCommand, tick: &Tick, inputs: &Inputs) -> Result<Decided<Change>, Refusal> {
        match (command, &self.pool) {
            (PoolCommand::Create { object, by }, None) => {
                let row = Pool::create(*object, &by);
                let changes = vec![Change::PutPool(row)];
                Ok(decided(Decision { act: Act::Record, changes, wants: Vec::new() }, Vec::new()))
            }
            (PoolCommand::Create { .. }, Some(_)) => Err(Refusal::AlreadyExists),
            (PoolCommand::Pool(Command::Pass), None) => Ok(Decided::default()),
            (PoolCommand::Pool(_), None) => Err(Refusal::NotFound),
            (PoolCommand::Pool(command), Some(pool)) => {
                let decision = pool.decide(command, tick, inputs)?;
                let happenings = happenings(pool, &decision);
                Ok(decided(decision, happenings))
            }
        }
    }

    fn evolve(&mut self, changes: &[Change]) {
        match (&mut self.pool, changes) {
            (_, []) => {}
            (pool @ None, [Change::PutPool(row)]) => *pool = Some(Pool::load(row.clone(), [], [], [])),
            (Some(pool), changes) => {
                pool.evolve_all(changes);
                if pool.has_ended() {
                    self.pool = None;
                }
            }
            (None, _) => tracing::error!(uid = %self.uid, "changes of a pool that does not exist"),
        }
    }

    fn stored(change: &Change) -> store::Write {
        let remove = |kind, uid: &ulid::Ulid| store::Write::Remove(RecordId { kind, uid: *uid });
        match change {
            Change::PutPool(row) => store::Write::Put(Record::Pool(row.clone())),
            Change::PutLease(lease) => store::Write::Put(Record::Lease(lease.clone())),
            Change::PutMember(member) => store::Write::Put(Record::Member(member.clone())),
            Change::PutEvent(event) => store::Write::Put(Record::Event(event.clone())),
            Change::RemovePool(uid) => remove(RecordKind::Pool, uid),
            Change::RemoveLease(uid) => remove(RecordKind::Lease, uid),
            Change::RemoveMember(uid) => remove(RecordKind::Member, uid),
            Change::RemoveEvent(uid) => remove(RecordKind::Event, uid),
        }
    }

    fn next_deadline(&self, tick: &Tick) -> Option<Time> {
        self.pool.as_ref()?.next_deadline(tick)
    }

    fn wants(&self, inputs: &Inputs) -> Vec<Want> {
        self.pool.as_ref().map(|pool| pool.wants(inputs)).unwrap_or_default()
    }

    fn inputs(&self, sources: &Sources) -> Inputs {
        let owner = self.pool.as_ref().map(|pool| pool.row().owner.clone());
        let keys = device_keys(sources)
            .into_iter()
            .filter(|(user, _)| {
                owner.as_ref().is_some_and(|owner| owner.kind == SubjectKind::User && owner.name == *user)
            })
            .map(|(_, key)| key)
            .collect();
        let providers = sources.providers.iter().map(|provider| ProviderState {
            name: provider.name().to_owned(),
            unavailable: match provider.availability() {
                Availability::Available | Availability::Unknown => None,
                Availability::Unavailable(why) => Some(why),
            },
            stopping: Stopping::Possible,
            resetting: Resetting::Impossible,
        });
        Inputs {
            room: room(self.pool.as_ref(), sources),
            providers: providers.collect(),
            owner_keys: OwnerKeys::new(keys),
            // Each member actor waits for its turn (`builds_at_once_max`): nothing is held here.
            builds_allowed: u32::MAX,
            status_write: StatusWrite::Idle,
        }
    }

    fn note_status_in_flight(inputs: &mut Inputs, in_flight: bool) {
        inputs.status_write = if in_flight { StatusWrite::InFlight } else { StatusWrite::Idle };
    }

    fn is_over(&self) -> bool {
        self.pool.is_none()
    }
}

impl PoolCore {
    /// The object of this pool that `write` is about. Leases and members are found through the
    /// view's index of names: what is not visible yet was never acknowledged.
    fn present(&self, write: &Write, shown: Option<&Resource>) -> Option<Present> {
        let pool = self.pool.as_ref()?;
        let record = match write.kind.kind {
            "WorkstationPool" => Record::Pool(pool.row().clone()),
            "WorkstationPoolLease" => Record::Lease(pool.lease(shown?.uid)?.clone()),
            "Workstation" => Record::Member(pool.member(shown?.uid)?.clone()),
            _ => return None,
        };
        let present = record.present(0)?;
        Some(Present { uid: present.uid, value: present.value })
    }

    fn command(
        &self,
        write: &Write,
        judged: Judged,
        uid: ulid::Ulid,
        sources: &Sources,
    ) -> Result<PoolCommand, Refusal> {
        let by = write.by.clone();
        let standing = self.standing(&by, sources);
        let checked = |value| {
            let object: Box<WorkstationPool> = Box::new(typed(value)?);
            placement::check(&sources.providers, &object.spec.template.spec, "spec.template.spec")?;
            Ok::<_, Refusal>(object)
        };
        let command = match (write.kind.kind, judged) {
            ("WorkstationPool", Judged::Create(value)) => {
                return Ok(PoolCommand::Create { object: checked(value)?, by });
            }
            ("WorkstationPool", Judged::Update(value)) => Command::UpdatePool { object: checked(value)? },
            ("WorkstationPool", Judged::Delete) => Command::DeletePool,
            ("WorkstationPoolLease", Judged::Create(value)) => {
                Command::CreateLease { object: Box::new(typed(value)?), by }
            }
            ("WorkstationPoolLease", Judged::Update(value)) => {
                Command::UpdateLease { uid, object: Box::new(typed(value)?), by, standing }
            }
            ("WorkstationPoolLease", Judged::Delete) => Command::DeleteLease { uid, by, standing },
            ("Workstation", Judged::Update(value)) => {
                Command::UpdateMember { uid, object: Box::new(typed(value)?), standing }
            }
            ("Workstation", Judged::Delete) => Command::DeleteMember { uid, standing },
            (_, Judged::Create(_) | Judged::Update(_) | Judged::Delete) => return Err(Refusal::NotFound),
        };
        Ok(PoolCommand::Pool(command))
    }

    fn standing(&self, by: &Subject, sources: &Sources) -> Standing {
        let owner = self.pool.as_ref().map(|pool| &pool.row().owner);
        let namespace = self.pool.as_ref().and_then(|pool| pool.row().metadata.namespace.clone());
        let admins = namespace.map(|namespace| namespace_admins(&namespace, sources)).unwrap_or_default();
        if crate::access::is_administrator(by) || owner == Some(by) || admins.contains(by) {
            Standing::OwnerOrAdmin
        } else {
            Standing::Other
        }
    }
}

fn decided(decision: Decision, happenings: Vec<Happening>) -> Decided<Change> {
    let Decision { act, changes, wants } = decision;
    let preview = changes.iter().find_map(|change| {
        let record = match change {
            Change::PutPool(row) => Record::Pool(row.clone()),
            Change::PutLease(lease) => Record::Lease(lease.clone()),
            Change::PutMember(member) => Record::Member(member.clone()),
            Change::PutEvent(_)
            | Change::RemovePool(_)
            | Change::RemoveLease(_)
            | Change::RemoveMember(_)
            | Change::RemoveEvent(_) => return None,
        };
        record.present(0).map(|shown| (shown.uid, shown.value))
    });
    Decided {
        changes,
        wants,
        preview,
        writes_status: act == Act::WriteStatus,
        happenings,
        ..Decided::default()
    }
}

fn namespace(name: &str, sources: &Sources) -> Option<crate::object::NamespaceSpec> {
    let kind = sources.registry.by_plural(CORE_GROUP, crate::object::VERSION, "namespaces")?;
    let resource = sources.view.get(&Key::new(kind, None, name))?;
    serde_json::from_value(resource.value.get("spec")?.clone()).ok()
}

fn namespace_admins(name: &str, sources: &Sources) -> Vec<Subject> {
    namespace(name, sources).map(|spec| spec.admins).unwrap_or_default()
}

/// How many more members the namespace's quota and the disk allow.
fn room(pool: Option<&Pool>, sources: &Sources) -> Room {
    if let Some(why) = placement::disk_holds_builds(sources) {
        return Room::Limited { more: 0, why };
    }
    let Some(name) = pool.and_then(|pool| pool.row().metadata.namespace.as_deref()) else {
        return Room::Unlimited;
    };
    let Some(most) = namespace(name, sources).and_then(|spec| spec.quota.workstations) else {
        return Room::Unlimited;
    };
    let held = sources.view.list(crate::object::WORKSTATIONS_GROUP, "workstations", Some(name)).items.len();
    let more = most.saturating_sub(u32::try_from(held).unwrap_or(u32::MAX));
    Room::Limited { more, why: format!("namespace {name} may hold {most} workstations") }
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        match denied.answer() {
            Answer::NotFound => Self::NotFound,
            Answer::Forbidden => Self::Forbidden(denied.to_string()),
            Answer::Invalid(error) => invalid(error),
            Answer::TooMany { retry_after_secs } => {
                Self::TooMany { message: denied.to_string(), retry_after_secs }
            }
        }
    }
}
