//! Arbitrary sessions: whatever is asked, in whatever order, the promises hold.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tenure_core::kernel::{Fence, Limits};

use crate::kernel::expected_outcome::{check_forecast, forecast};
use crate::kernel::model::LeaseModel;
use crate::kernel::strategies::{CommandGenerator, KernelStep, config, limits_and_steps};
use crate::kernel::wait_graph::check_no_cycle;
use crate::scenario::ScenarioWorld;

/// Plays a session. After each step the world checks itself (see `story`), the answer is what the model
/// foretold, and each event is one that the model can believe.
fn play(limits: &Limits, steps: &[KernelStep]) {
    let (mut world, mut generator) = (ScenarioWorld::new(limits.clone()), CommandGenerator::default());
    let mut model = LeaseModel::default();
    for step in steps {
        let (command, stamp) = generator.next_command(step, &world.state);
        let now = stamp.max(world.state.now());
        let foretold = forecast(&model, &command, now);
        let before = model.clone();
        let decision = world.decide_and_apply(&command, stamp);
        for event in &decision.events {
            assert_eq!(event.occurred_at(), now, "an event of another time: {event:?}");
            model.record(event);
        }
        model.check(limits, now);
        check_forecast(&foretold, &before, &model, &command, &decision, limits, now);
        check_no_cycle(&model, now);
        check_same_leases(&world, &model);
    }
}

fn check_same_leases(world: &ScenarioWorld, model: &LeaseModel) {
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
    fn kernel_matches_the_model((limits, steps) in limits_and_steps()) {
        play(&limits, &steps);
    }
}
