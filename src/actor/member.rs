//! The member actor: drives one machine towards what its owner wants, and reports what is.
//!
//! Every decision is the pure [`Drive`]'s. The actor performs its acts off the arbiter (provider
//! calls may hang: they hold up this member alone), keeps the one timer, and sends a fact whenever
//! it changed or a want came in. It writes nothing to the store.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorContext, AsyncContext, Context, Handler, Message, SpawnHandle};
use tokio::task::{AbortHandle, JoinHandle};
use ulid::Ulid;

use super::directory::Directory;
use crate::agent::link::{Link, LinkError, LinkEvent};
use crate::clock;
use crate::machine::drive::{Act, Applied, Call, CallError, Drive, Event, Seen};
use crate::machine::{Fact, Want};
use crate::provider::{Door, Inspection, Provider, ProviderError};
use crate::store::OwnerId;

/// How long the agent may take for its first word after the stream is open: a machine may boot meanwhile.
const HELLO_TIMEOUT: Duration = Duration::from_secs(30);
/// How long one order may take; the small configuration pass takes milliseconds.
const APPLY_TIMEOUT: Duration = Duration::from_mins(2);

/// The newest wish of the owner.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Wanted(pub Want);

/// Something happened to the machine or its link.
#[derive(Message)]
#[rtype(result = "()")]
struct Happened {
    event: Event,
    /// Of which link: what an older one still says is dropped.
    link_epoch: Option<u64>,
}

/// The link was opened.
#[derive(Message)]
#[rtype(result = "()")]
struct Linked {
    link: Arc<Link>,
    link_epoch: u64,
}

/// What every member actor is given.
#[derive(Clone)]
pub struct Surroundings {
    pub directory: Directory,
    /// Runs provider calls and agent traffic.
    pub runtime: tokio::runtime::Handle,
}

/// Drives one machine.
pub struct MemberActor {
    drive: Drive,
    owner: OwnerId,
    provider: Arc<dyn Provider>,
    around: Surroundings,
    link: Option<Arc<Link>>,
    link_epoch: u64,
    reader: Option<AbortHandle>,
    /// The boot whose end is being watched.
    watched: Option<(Ulid, AbortHandle)>,
    timer: Option<SpawnHandle>,
    last_fact: Option<Fact>,
}

impl MemberActor {
    /// For the machine `member_uid` of `owner`.
    #[must_use]
    pub fn new(member_uid: Ulid, owner: OwnerId, provider: Arc<dyn Provider>, around: Surroundings) -> Self {
        Self {
            drive: Drive::new(member_uid),
            owner,
            provider,
            around,
            link: None,
            link_epoch: 0,
            reader: None,
            watched: None,
            timer: None,
            last_fact: None,
        }
    }

    fn take(&mut self, event: Event, ctx: &mut Context<Self>) {
        let asked = matches!(event, Event::Want(_));
        if let Event::Inspected(seen) = &event {
            self.watch_end(seen, ctx);
        }
        let tick = clock::tick();
        self.drive.handle(event, &tick);
        while let Some(act) = self.drive.next(&tick) {
            self.perform(act, ctx);
        }
        self.report(asked);
        self.arm(ctx);
        if self.drive.is_over() {
            self.around.directory.forget_member(self.member_uid());
            ctx.stop();
        }
    }

    fn report(&mut self, asked: bool) {
        let fact = self.drive.fact();
        if asked || self.last_fact.as_ref() != Some(&fact) {
            self.around.directory.tell_owner(&self.owner, fact.clone());
            self.last_fact = Some(fact);
        }
    }

    fn arm(&mut self, ctx: &mut Context<Self>) {
        if let Some(timer) = self.timer.take() {
            ctx.cancel_future(timer);
        }
        let tick = clock::tick();
        if let Some(deadline_ms) = self.drive.next_deadline_ms(&tick) {
            let wait = Duration::from_millis(deadline_ms.saturating_sub(tick.steady_ms()));
            self.timer = Some(ctx.run_later(wait, |member, ctx| member.take(Event::Timer, ctx)));
        }
    }

    fn perform(&mut self, act: Act, ctx: &mut Context<Self>) {
        match act {
            Act::Provider(call) => self.call(call, ctx),
            Act::Connect => self.connect(ctx),
            Act::Apply { revision } => self.apply(revision, ctx),
        }
    }

    fn call(&mut self, call: Call, ctx: &mut Context<Self>) {
        let Some(want) = self.drive.want() else { return };
        let (provider, uid, spec) = (self.provider.clone(), want.member_uid, want.machine.clone());
        let work = self.around.runtime.spawn(async move {
            match call {
                Call::Inspect => match provider.inspect(uid).await {
                    Ok(inspection) => Event::Inspected(seen(inspection)),
                    Err(error) => failed(call, &error),
                },
                Call::Create => done(call, provider.create(uid, &spec).await),
                Call::Start => done(call, provider.start(uid).await),
                Call::Stop => done(call, provider.stop(uid).await),
                Call::Delete => done(call, provider.delete(uid).await),
            }
        });
        let addr = ctx.address();
        self.around.runtime.spawn(async move {
            // A call that panicked has failed; unanswered it would hold up its member for ever.
            let broken = |_| failed(call, &ProviderError::Failed("the provider itself failed".into()));
            let event = work.await.unwrap_or_else(broken);
            addr.do_send(Happened { event, link_epoch: None });
        });
    }

    fn watch_end(&mut self, seen: &Seen, ctx: &mut Context<Self>) {
        let boot = match seen {
            Seen::Running { boot_id, .. } => Some(*boot_id),
            Seen::Absent | Seen::Stopped | Seen::Broken { .. } => None,
        };
        if self.watched.as_ref().map(|(watched, _)| *watched) == boot {
            return;
        }
        if let Some((_, watch)) = self.watched.take() {
            watch.abort();
        }
        let Some(boot) = boot else { return };
        let (provider, uid, addr) = (self.provider.clone(), self.member_uid(), ctx.address());
        let watch: JoinHandle<()> = self.around.runtime.spawn(async move {
            if provider.ended(uid).await.is_ok() {
                addr.do_send(Happened { event: Event::Ended, link_epoch: None });
            }
        });
        self.watched = Some((boot, watch.abort_handle()));
    }

    fn connect(&mut self, ctx: &mut Context<Self>) {
        self.drop_link();
        self.link_epoch += 1;
        let (provider, uid, addr, link_epoch) =
            (self.provider.clone(), self.member_uid(), ctx.address(), self.link_epoch);
        let task = self.around.runtime.spawn(async move {
            let down = |why: String| {
                let event = Event::LinkDown { why };
                addr.do_send(Happened { event, link_epoch: Some(link_epoch) });
            };
            let stream = match provider.link(uid, Door::Control).await {
                Ok(stream) => stream,
                Err(error) => return down(error.to_string()),
            };
            let link = match Link::open(stream, HELLO_TIMEOUT).await {
                Ok(link) => Arc::new(link),
                Err(error) => return down(error.to_string()),
            };
            let mut watch = link.watch();
            addr.do_send(Linked { link, link_epoch });
            while let Some(event) = watch.next().await {
                match event {
                    LinkEvent::Sessions(open) => {
                        let event = Event::Sessions(open);
                        addr.do_send(Happened { event, link_epoch: Some(link_epoch) });
                    }
                    LinkEvent::Lost(why) => down(why),
                }
            }
        });
        self.reader = Some(task.abort_handle());
    }

    fn apply(&mut self, revision: u64, ctx: &mut Context<Self>) {
        let (Some(link), Some(want)) = (self.link.clone(), self.drive.want()) else { return };
        let (keys, setup) = (want.keys.clone(), want.setup.clone());
        let (addr, link_epoch) = (ctx.address(), self.link_epoch);
        self.around.runtime.spawn(async move {
            let event = match link.apply(revision, &keys, &setup, APPLY_TIMEOUT).await {
                Ok(done) => {
                    let crate::agent::link::Applied { revision, keys, setup, remarks } = done;
                    Event::Applied(Applied { revision, keys, setup, remarks })
                }
                // A newer order is under way, and its answer counts.
                Err(LinkError::Superseded) => return,
                Err(error) => Event::LinkDown { why: error.to_string() },
            };
            addr.do_send(Happened { event, link_epoch: Some(link_epoch) });
        });
    }

    fn drop_link(&mut self) {
        self.link = None;
        if let Some(reader) = self.reader.take() {
            reader.abort();
        }
    }

    fn member_uid(&self) -> Ulid {
        self.drive.member_uid()
    }
}

impl Actor for MemberActor {
    type Context = Context<Self>;

    fn stopped(&mut self, _: &mut Self::Context) {
        self.drop_link();
        if let Some((_, watch)) = self.watched.take() {
            watch.abort();
        }
    }
}

impl Drop for MemberActor {
    fn drop(&mut self) {
        // It ends by itself only when its machine is gone; anything else was a panic.
        if !self.drive.is_over() {
            self.around.directory.member_died(&self.owner, self.member_uid());
        }
    }
}

impl Handler<Wanted> for MemberActor {
    type Result = ();

    fn handle(&mut self, Wanted(want): Wanted, ctx: &mut Self::Context) {
        self.take(Event::Want(Box::new(want)), ctx);
    }
}

impl Handler<Happened> for MemberActor {
    type Result = ();

    fn handle(&mut self, happened: Happened, ctx: &mut Self::Context) {
        if happened.link_epoch.is_some_and(|epoch| epoch != self.link_epoch) {
            return;
        }
        match &happened.event {
            Event::Ended => self.watched = None,
            Event::LinkDown { why } => {
                tracing::debug!(member = %self.member_uid(), why, "link down");
                self.drop_link();
                // What this link still has under way is of no interest any more.
                self.link_epoch += 1;
            }
            Event::CallFailed(call, error) => {
                tracing::warn!(member = %self.member_uid(), ?call, ?error, "provider call failed");
            }
            Event::Want(_)
            | Event::Inspected(_)
            | Event::Done(_)
            | Event::LinkUp { .. }
            | Event::Applied(_)
            | Event::Sessions(_)
            | Event::Timer => {}
        }
        self.take(happened.event, ctx);
    }
}

impl Handler<Linked> for MemberActor {
    type Result = ();

    fn handle(&mut self, linked: Linked, ctx: &mut Self::Context) {
        if linked.link_epoch == self.link_epoch {
            let agent = linked.link.agent().clone();
            self.link = Some(linked.link);
            self.take(Event::LinkUp { agent }, ctx);
        }
    }
}

fn seen(inspection: Inspection) -> Seen {
    match inspection {
        Inspection::Absent => Seen::Absent,
        Inspection::Running { boot_id, started_at, .. } => Seen::Running { boot_id, started_at },
        Inspection::Stopped { .. } => Seen::Stopped,
        Inspection::Broken { why } => Seen::Broken { why },
    }
}

fn done(call: Call, result: Result<(), ProviderError>) -> Event {
    match result {
        Ok(()) => Event::Done(call),
        Err(error) => failed(call, &error),
    }
}

fn failed(call: Call, error: &ProviderError) -> Event {
    let what = error.to_string();
    Event::CallFailed(
        call,
        match error {
            ProviderError::NoRoom(_) | ProviderError::Unavailable(_) => CallError::Unplaceable(what),
            ProviderError::Refused(_) | ProviderError::Failed(_) => CallError::Failed(what),
        },
    )
}
