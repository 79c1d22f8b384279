//! Ledgers that the kernel did not write: an event that does not follow is refused and changes nothing.

use proptest::prelude::*;
use tenure_core::kernel::{ApplyError, Event, KernelState, decide};

use crate::kernel::strategies::{CommandGenerator, config, steps};
use crate::kernel_event_strategies::plausible_event;

/// Applies what it can; the state must be whole after each, and unchanged by what it refuses.
pub fn apply_and_check(state: &mut KernelState, event: &Event) -> Result<(), TestCaseError> {
    let before = state.to_comparable();
    let answer = state.apply(event);
    if let Err(ApplyError(reason)) = answer {
        prop_assert_eq!(
            state.to_comparable(),
            before,
            "refused ({}), and yet changed by {:?}",
            reason,
            event
        );
    }
    prop_assert_eq!(state.check_invariants(), Ok(()), "after {:?}", event);
    Ok(())
}

proptest! {
    #![proptest_config(config(2_000))]

    #[test]
    fn apply_never_panics_or_breaks_invariants(events in prop::collection::vec(plausible_event(), 1..40)) {
        let mut state = KernelState::default();
        for event in &events {
            apply_and_check(&mut state, event)?;
        }
    }

    // Whatever was believed, the kernel goes on from there.
    #[test]
    fn decisions_after_arbitrary_events_can_be_applied(
        events in prop::collection::vec(plausible_event(), 1..40), steps in steps(10),
    ) {
        let (mut state, mut generator) = (KernelState::default(), CommandGenerator::default());
        for event in &events {
            let _ = state.apply(event);
        }
        for step in &steps {
            let (command, now) = generator.next_command(step, &state);
            for event in &decide(&state, &command, now).events {
                prop_assert_eq!(state.apply(event), Ok(()), "{:?} decided for {:?}", event, command);
            }
            prop_assert_eq!(state.check_invariants(), Ok(()), "after {:?}", command);
        }
    }
}
