//! Everything that may happen. Leases and members are meant by number, counted round those there
//! are when it happens, so that a shorter history still means something.

use proptest::prelude::*;

#[derive(Clone, Debug)]
pub struct Transition {
    pub event: Event,
    /// How often the pool looks afterwards.
    pub looks: Looks,
    /// What of it becomes durable and reaches the machines.
    pub sync: Sync,
}

#[derive(Clone, Copy, Debug)]
pub enum Looks {
    All,
    One,
    None,
}

#[derive(Clone, Copy, Debug)]
pub enum Sync {
    /// All is durable, and every machine has its newest want.
    All,
    /// All is durable; wants are on their way.
    Durable,
    /// The next submission is durable, in the order they were made.
    Next,
    /// Nothing: memory is ahead of the disk.
    None,
}

#[derive(Clone, Copy, Debug)]
pub enum By {
    Holder,
    Owner,
    Stranger,
}

#[derive(Clone, Debug)]
pub enum Event {
    Nothing,
    Ask {
        by: By,
        expires: Expires,
        born: Born,
        keys: u8,
        foreign: bool,
    },
    WriteLease {
        lease: u8,
        write: LeaseWrite,
        by: By,
    },
    DeleteLease {
        lease: u8,
        by: By,
    },
    Cordon {
        member: u8,
        cordoned: bool,
        by: By,
    },
    WriteMember {
        member: u8,
        write: MemberWrite,
    },
    DeleteMember {
        member: u8,
        by: By,
    },
    WritePool(PoolWrite),
    DeletePool,
    /// A machine does all that its newest want asks.
    Obey(u8),
    /// A machine says something, true or not.
    Say {
        member: u8,
        machine: Said,
        revision: Revision,
        boot: Boot,
        report: Report,
    },
    /// Something that was said is heard once more.
    Repeat(u8),
    Input(Input),
    /// Both clocks go on.
    Pass(Lapse),
    /// Somebody sets the wall clock by so many minutes.
    SetClock(i16),
    /// One want reaches its machine before others.
    Deliver(u8),
    /// The daemon dies and comes back with what was durable.
    Crash,
    /// Machines obey until all is quiet.
    Settle,
}

#[derive(Clone, Copy, Debug)]
pub enum Born {
    Needed,
    Done,
}

#[derive(Clone, Copy, Debug)]
pub enum Expires {
    Unset,
    /// In so many minutes.
    In(i16),
}

#[derive(Clone, Copy, Debug)]
pub enum LeaseWrite {
    Done,
    Recycle,
    Needed,
    Renew,
    Expires(i16),
    Keys(u8),
    KeysAndDone(u8),
    OtherPool,
    OtherHolder,
    OtherUid,
    Finalizer(bool),
    /// What somebody read long ago, written as it was.
    Stale,
}

#[derive(Clone, Copy, Debug)]
pub enum MemberWrite {
    Finalizer(bool),
    Power,
    Environment,
    Nonce,
}

#[derive(Clone, Copy, Debug)]
pub enum PoolWrite {
    Template(u8),
    Provider(u8),
    Size(u8),
    Floors(u8, u8),
    StopAfter(u8),
    DeleteAfter(u8),
    MaxAge(u8),
    MaxTerm(u8),
    MaxPending(u8),
    Retention(u8),
    NoRecycle,
    Recycle { reuses: u8, timeout: u8, reboot: bool, reset: bool },
    Paused(bool),
    Owner(u8),
    Finalizer(bool),
}

#[derive(Clone, Copy, Debug)]
pub enum Said {
    Running { configured: bool, keys: bool },
    Booting,
    Stopped,
    Stopping,
    Absent,
    Failed,
    Unknown,
    Unplaceable,
}

#[derive(Clone, Copy, Debug)]
pub enum Revision {
    Newest,
    Older(u8),
    /// Of a want that was made and has not arrived.
    Undelivered,
    /// Of one that was never made.
    Future,
}

#[derive(Clone, Copy, Debug)]
pub enum Boot {
    Same,
    New,
    Older,
}

#[derive(Clone, Copy, Debug)]
pub enum Report {
    None,
    UnderWay,
    Succeeded,
    Failed,
    OlderSucceeded,
    UnknownSucceeded,
}

#[derive(Clone, Copy, Debug)]
pub enum Input {
    Room(u8),
    Builds(u8),
    /// Whether a provider can make machines, stop them, reset them.
    Provider {
        which: u8,
        available: bool,
        stops: bool,
        resets: bool,
    },
    NoProvider,
    Devices(u8),
    /// Whether agents can recycle, and have introduced themselves.
    Agents {
        recycle: bool,
    },
}

#[derive(Clone, Copy, Debug)]
pub enum Lapse {
    ToDeadline,
    Seconds(u8),
    Minutes(u8),
    Hours(u8),
    Days,
}

pub fn transition() -> BoxedStrategy<Transition> {
    let looks = prop_oneof![6 => Just(Looks::All), 2 => Just(Looks::One), 2 => Just(Looks::None)];
    let sync = prop_oneof![
        8 => Just(Sync::All),
        2 => Just(Sync::Durable),
        1 => Just(Sync::Next),
        2 => Just(Sync::None),
    ];
    (event(), looks, sync).prop_map(|(event, looks, sync)| Transition { event, looks, sync }).boxed()
}

fn event() -> impl Strategy<Value = Event> {
    let n = || 0_u8..12;
    prop_oneof![
        1 => Just(Event::Nothing),
        9 => people_ask(),
        12 => (n(), lease_write(), by()).prop_map(|(lease, write, by)| Event::WriteLease { lease, write, by }),
        3 => (n(), by()).prop_map(|(lease, by)| Event::DeleteLease { lease, by }),
        2 => (n(), any::<bool>(), owners()).prop_map(|(member, cordoned, by)| Event::Cordon { member, cordoned, by }),
        1 => (n(), member_write()).prop_map(|(member, write)| Event::WriteMember { member, write }),
        1 => (n(), owners()).prop_map(|(member, by)| Event::DeleteMember { member, by }),
        7 => pool_write().prop_map(Event::WritePool),
        1 => prop_oneof![1 => Just(Event::DeletePool), 9 => Just(Event::Nothing)],
        30 => n().prop_map(Event::Obey),
        16 => say(),
        4 => n().prop_map(Event::Repeat),
        4 => input().prop_map(Event::Input),
        9 => lapse().prop_map(Event::Pass),
        1 => (-90_i16..90).prop_map(Event::SetClock),
        3 => n().prop_map(Event::Deliver),
        3 => Just(Event::Crash),
        4 => Just(Event::Settle),
    ]
}

fn by() -> impl Strategy<Value = By> {
    prop_oneof![8 => Just(By::Holder), 2 => Just(By::Owner), 1 => Just(By::Stranger)]
}

fn owners() -> impl Strategy<Value = By> {
    prop_oneof![8 => Just(By::Owner), 1 => Just(By::Holder)]
}

fn people_ask() -> impl Strategy<Value = Event> {
    let expires = prop_oneof![6 => Just(Expires::Unset), 2 => (-2_i16..90).prop_map(Expires::In)];
    let born = prop_oneof![20 => Just(Born::Needed), 1 => Just(Born::Done)];
    let foreign = prop_oneof![8 => Just(false), 1 => Just(true)];
    (by(), expires, born, 0_u8..4, foreign).prop_map(|(by, expires, born, keys, foreign)| Event::Ask {
        by,
        expires,
        born,
        keys,
        foreign,
    })
}

fn lease_write() -> impl Strategy<Value = LeaseWrite> {
    prop_oneof![
        5 => Just(LeaseWrite::Done),
        14 => Just(LeaseWrite::Recycle),
        1 => Just(LeaseWrite::Needed),
        2 => Just(LeaseWrite::Renew),
        2 => (-2_i16..90).prop_map(LeaseWrite::Expires),
        4 => (0_u8..4).prop_map(LeaseWrite::Keys),
        1 => (0_u8..4).prop_map(LeaseWrite::KeysAndDone),
        1 => Just(LeaseWrite::OtherPool),
        1 => Just(LeaseWrite::OtherHolder),
        1 => Just(LeaseWrite::OtherUid),
        2 => any::<bool>().prop_map(LeaseWrite::Finalizer),
        2 => Just(LeaseWrite::Stale),
    ]
}

fn member_write() -> impl Strategy<Value = MemberWrite> {
    prop_oneof![
        4 => any::<bool>().prop_map(MemberWrite::Finalizer),
        1 => Just(MemberWrite::Power),
        1 => Just(MemberWrite::Environment),
        1 => Just(MemberWrite::Nonce),
    ]
}

fn pool_write() -> impl Strategy<Value = PoolWrite> {
    prop_oneof![
        2 => (0_u8..3).prop_map(PoolWrite::Template),
        1 => (0_u8..4).prop_map(PoolWrite::Provider),
        3 => (1_u8..7).prop_map(PoolWrite::Size),
        4 => (0_u8..3, 0_u8..3).prop_map(|(running, stopped)| PoolWrite::Floors(running, stopped)),
        1 => (0_u8..3).prop_map(PoolWrite::StopAfter),
        1 => (0_u8..3).prop_map(PoolWrite::DeleteAfter),
        1 => (0_u8..3).prop_map(PoolWrite::MaxAge),
        1 => (0_u8..3).prop_map(PoolWrite::MaxTerm),
        1 => (1_u8..6).prop_map(PoolWrite::MaxPending),
        1 => (0_u8..3).prop_map(PoolWrite::Retention),
        1 => Just(PoolWrite::NoRecycle),
        3 => (1_u8..5, 0_u8..3, any::<bool>(), any::<bool>()).prop_map(|(reuses, timeout, reboot, reset)| {
            PoolWrite::Recycle { reuses, timeout, reboot, reset }
        }),
        2 => prop_oneof![3 => Just(false), 1 => Just(true)].prop_map(PoolWrite::Paused),
        1 => (0_u8..2).prop_map(PoolWrite::Owner),
        1 => any::<bool>().prop_map(PoolWrite::Finalizer),
    ]
}

fn say() -> impl Strategy<Value = Event> {
    let machine = prop_oneof![
        8 => (any::<bool>(), any::<bool>()).prop_map(|(configured, keys)| Said::Running { configured, keys }),
        2 => Just(Said::Booting),
        2 => Just(Said::Stopped),
        1 => Just(Said::Stopping),
        1 => Just(Said::Absent),
        3 => Just(Said::Failed),
        1 => Just(Said::Unknown),
        1 => Just(Said::Unplaceable),
    ];
    let revision = prop_oneof![
        10 => Just(Revision::Newest),
        3 => (1_u8..4).prop_map(Revision::Older),
        1 => Just(Revision::Undelivered),
        1 => Just(Revision::Future),
    ];
    let boot = prop_oneof![8 => Just(Boot::Same), 2 => Just(Boot::New), 1 => Just(Boot::Older)];
    let report = prop_oneof![
        6 => Just(Report::None),
        2 => Just(Report::UnderWay),
        2 => Just(Report::Succeeded),
        1 => Just(Report::Failed),
        1 => Just(Report::OlderSucceeded),
        1 => Just(Report::UnknownSucceeded),
    ];
    (0_u8..12, machine, revision, boot, report).prop_map(|(member, machine, revision, boot, report)| {
        Event::Say { member, machine, revision, boot, report }
    })
}

fn input() -> impl Strategy<Value = Input> {
    let mostly = || prop_oneof![3 => Just(true), 1 => Just(false)];
    prop_oneof![
        3 => (0_u8..4).prop_map(Input::Room),
        2 => (0_u8..4).prop_map(Input::Builds),
        4 => (0_u8..2, mostly(), mostly(), any::<bool>())
            .prop_map(|(which, available, stops, resets)| Input::Provider { which, available, stops, resets }),
        1 => Just(Input::NoProvider),
        2 => (0_u8..3).prop_map(Input::Devices),
        1 => mostly().prop_map(|recycle| Input::Agents { recycle }),
    ]
}

fn lapse() -> impl Strategy<Value = Lapse> {
    prop_oneof![
        8 => Just(Lapse::ToDeadline),
        3 => (1_u8..10).prop_map(Lapse::Seconds),
        3 => (1_u8..40).prop_map(Lapse::Minutes),
        1 => (1_u8..5).prop_map(Lapse::Hours),
        1 => Just(Lapse::Days),
    ]
}
