//! Arbitrary sessions: whatever is asked, in whatever order, the promises hold.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tenure_core::kernel::{Fence, Limits};

use crate::kernel_circles::check_no_circle;
use crate::kernel_forecast::{forecast, judge};
use crate::kernel_model::Model;
use crate::kernel_strategies::{Script, Step, config, session};
use crate::story::World;

/// Plays a session. After each step the world checks itself (see `story`), the answer is what the model
/// foretold, and each event is one that the model can believe.
fn play(limits: &Limits, steps: &[Step]) {
    let (mut world, mut script) = (World::new(limits.clone()), Script::default());
    let mut model = Model::default();
    for step in steps {
        let (command, stamp) = script.next(step, &world.state);
        let now = stamp.max(world.state.now());
        let foretold = forecast(&model, &command, now);
        let before = model.clone();
        let decision = world.take(&command, stamp);
        for event in &decision.events {
            assert_eq!(event.at(), now, "an event of another time: {event:?}");
            model.record(event);
        }
        model.check(limits, now);
        judge(&foretold, &before, &model, &command, &decision, limits, now);
        check_no_circle(&model, now);
        check_same_leases(&world, &model);
    }
}

fn check_same_leases(world: &World, model: &Model) {
    let kernel = world
        .state
        .leases_from(Fence(0))
        .map(|lease| (lease.fence.0, lease.resource.clone(), lease.holder.clone(), lease.terms.expires_at.0));
    let ours = model
        .leases
        .iter()
        .map(|lease| (lease.fence.0, lease.resource.clone(), lease.holder.clone(), lease.end.0));
    let (kernel, ours): (BTreeSet<_>, BTreeSet<_>) = (kernel.collect(), ours.collect());
    assert_eq!(kernel, ours);
}

proptest! {
    #![proptest_config(config(2_000))]

    // S2-1
    #[test]
    fn kernel_matches_the_model((limits, steps) in session()) {
        play(&limits, &steps);
    }
}
