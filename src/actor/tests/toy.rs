//! A provider of machines that are nothing but an agent's end of a stream, and that may never come.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::UnixStream;
use ulid::Ulid;

use crate::agent::wire::{self, AgentHello, Applied, Outcome, ToAgent, ToDaemon};
use crate::clock;
use crate::machine::MachineSpec;
use crate::object::{FieldError, WorkstationSpec};
use crate::provider::{Availability, Call, CarriedImage, Door, Inspection, Provider};

/// The provider `toy`.
#[derive(Default)]
pub struct Toy {
    machines: Mutex<HashMap<Ulid, Machine>>,
    /// Machines whose name begins so are never made: the call hangs.
    hanging: Mutex<Vec<&'static str>>,
    /// The call panics that should make these.
    panicking: Mutex<Vec<&'static str>>,
    /// The names of machines that were asked for, in order.
    asked: Mutex<Vec<String>>,
    /// What each agent was last told to let in, by the machine's name.
    keys: Arc<Mutex<BTreeMap<String, Vec<String>>>>,
}

#[derive(Clone)]
struct Machine {
    name: String,
    boot_id: Ulid,
}

impl Toy {
    /// From now on no machine comes whose name begins so.
    pub fn hang(&self, prefix: &'static str) {
        lock(&self.hanging).push(prefix);
    }

    /// From now on the provider itself fails over machines whose name begins so.
    pub fn panic(&self, prefix: &'static str) {
        lock(&self.panicking).push(prefix);
    }

    /// Machines come again: those that hang already do not.
    pub fn recover(&self) {
        lock(&self.hanging).clear();
    }

    /// How many machines were asked for whose name begins so.
    pub fn asked_for(&self, prefix: &str) -> usize {
        lock(&self.asked).iter().filter(|name| name.starts_with(prefix)).count()
    }

    /// The keys that the machine of this name lets in.
    pub fn keys_of(&self, name: &str) -> Vec<String> {
        lock(&self.keys).get(name).cloned().unwrap_or_default()
    }

    fn machine(&self, id: Ulid) -> Option<Machine> {
        lock(&self.machines).get(&id).cloned()
    }
}

impl Provider for Toy {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn availability(&self) -> Availability {
        Availability::Available
    }

    fn images(&self) -> Vec<CarriedImage> {
        Vec::new()
    }

    fn check(&self, _: &WorkstationSpec, _: &str) -> Vec<FieldError> {
        Vec::new()
    }

    fn create<'a>(&'a self, id: Ulid, spec: &'a MachineSpec) -> Call<'a, ()> {
        lock(&self.asked).push(spec.name.clone());
        if lock(&self.hanging).iter().any(|prefix| spec.name.starts_with(prefix)) {
            return Box::pin(std::future::pending());
        }
        if lock(&self.panicking).iter().any(|prefix| spec.name.starts_with(prefix)) {
            return Box::pin(async { panic!("as asked") });
        }
        let machine = Machine { name: spec.name.clone(), boot_id: Ulid(clock::entropy()) };
        lock(&self.machines).insert(id, machine);
        done(())
    }

    fn start(&self, _: Ulid) -> Call<'_, ()> {
        done(())
    }

    fn stop(&self, _: Ulid) -> Call<'_, ()> {
        done(())
    }

    fn delete(&self, id: Ulid) -> Call<'_, ()> {
        lock(&self.machines).remove(&id);
        done(())
    }

    fn inspect(&self, id: Ulid) -> Call<'_, Inspection> {
        done(self.machine(id).map_or(Inspection::Absent, |machine| Inspection::Running {
            boot_id: machine.boot_id,
            started_at: clock::now(),
            image: String::new(),
        }))
    }

    fn ended(&self, _: Ulid) -> Call<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn list(&self) -> Call<'_, Vec<Ulid>> {
        done(lock(&self.machines).keys().copied().collect())
    }

    fn link(&self, id: Ulid, _: Door) -> Call<'_, UnixStream> {
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        if let Some(machine) = self.machine(id) {
            tokio::spawn(agent(theirs, machine.name, Arc::clone(&self.keys)));
        }
        done(ours)
    }
}

/// Does at once whatever it is told, and keeps the keys in mind.
async fn agent(mut stream: UnixStream, name: String, keys: Arc<Mutex<BTreeMap<String, Vec<String>>>>) {
    let hello = AgentHello { protocol: wire::PROTOCOL, version: "1".into(), ..AgentHello::default() };
    if wire::write_frame(&mut stream, &ToDaemon::Hello(hello)).await.is_err() {
        return;
    }
    while let Ok(Some(frame)) = wire::read_frame::<ToAgent>(&mut stream).await {
        let ToAgent::Apply(apply) = frame else { continue };
        lock(&keys).insert(name.clone(), apply.keys);
        let (revision, keys, setup) = (apply.revision, Outcome::Done, Outcome::Done);
        let applied = ToDaemon::Applied(Applied { revision, keys, setup, remarks: Vec::new() });
        if wire::write_frame(&mut stream, &applied).await.is_err() {
            return;
        }
    }
}

fn done<'a, T: Send + 'a>(result: T) -> Call<'a, T> {
    Box::pin(async { Ok(result) })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
