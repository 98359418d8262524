//! From any state, once the world is friendly and time goes on, the pool comes to rest, every lease
//! is served or over, and the floors are filled: nothing was forgotten on the way.

use ringleader_proof::object::{LeasePhase, MemberState};
use ringleader_proof::pool::{Command, Member, Standing};

use crate::events::change_pool;
use crate::rig::Rig;
use crate::transition::PoolWrite;

/// Longer than the longest wait for a build, and no longer: a lease that is stuck has not expired.
const WHILE_MILLIS: i64 = 65 * 60_000;

pub fn come_to_rest(mut rig: Rig) {
    use MemberState::{Building, Deleting, IdleRunning, IdleStopped, Recycling, Starting, Stopping};

    rig.around.be_friendly();
    be_generous(&mut rig);
    uncordon(&mut rig);
    live(&mut rig, WHILE_MILLIS);
    if rig.pool.has_ended() {
        return;
    }
    for lease in rig.model.leases.iter().filter(|lease| !lease.over) {
        let at_rest = matches!(lease.phase, LeasePhase::Ready | LeasePhase::Failed);
        assert!(at_rest, "a lease was forgotten: {lease:?} of {:?}", rig.model);
    }
    for state in [Building, Starting, Stopping, Deleting, Recycling] {
        assert_eq!(rig.count(state), 0, "a member never got further than {state:?}: {:?}", rig.model);
    }
    if !rig.model.deleting {
        let warm = &rig.model.spec.warm;
        let idle = (rig.count(IdleRunning), rig.count(IdleStopped));
        assert_eq!(idle, (warm.running as usize, warm.stopped as usize), "the floors: {:?}", rig.model);
    }
}

/// The pool may build, at providers that are there.
fn be_generous(rig: &mut Rig) {
    let Some(mut object) = rig.pool.row().present() else { return };
    for write in [
        PoolWrite::Paused(false),
        PoolWrite::Size(20),
        PoolWrite::Provider(3),
        PoolWrite::StopAfter(1),
        PoolWrite::DeleteAfter(1),
    ] {
        change_pool(&mut object, write);
    }
    object.metadata.generation += 1;
    rig.submit(Command::UpdatePool { object: Box::new(object) }).expect("a change is taken");
}

fn uncordon(rig: &mut Rig) {
    let cordoned: Vec<_> = rig.pool.members().filter(|member| member.cordoned).map(Member::uid).collect();
    for uid in cordoned {
        let mut object = rig.pool.member(uid).expect("a member").present();
        object.spec.cordoned = false;
        let standing = Standing::OwnerOrAdmin;
        let command = Command::UpdateMember { uid, object: Box::new(object), standing };
        rig.submit(command).expect("an owner uncordons");
    }
}

/// Time goes on, stopping wherever something falls due, with machines that obey.
fn live(rig: &mut Rig, millis: i64) {
    let end = rig.clocks.steady.plus_millis(millis);
    loop {
        rig.settle();
        let tick = rig.clocks.tick();
        let deadline = rig.pool.next_deadline(&tick).filter(|deadline| *deadline <= end);
        let Some(deadline) = deadline else { return };
        rig.clocks.advance(deadline.millis_since(tick.steady));
    }
}
