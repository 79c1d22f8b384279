//! Stories in which one decision does two things, and the second must see the first.

use tenure_core::kernel::Limits;

use crate::story::{World, check};

#[test]
fn who_asks_again_for_what_it_waited_for_does_not_get_it_twice() {
    // The lease that is over lets in the very holder that asks: it has what it wants.
    check(
        "
         0  acquire db bob 10                       -> granted 1
         0  acquire db alice 10 wait 60             -> queued t1 place 1 behind bob until 60
        10  acquire db alice 30 refresh             -> expired 1, served t1 with 2, granted 2
        39  acquire db bob 10                       -> held by alice until 40, 0 waiting
    ",
    );
}

#[test]
fn who_waits_for_a_lease_does_not_keep_its_holder_from_refreshing_it() {
    check(
        "
         0  acquire db alice 10 refresh             -> granted 1
         1  acquire db bob 10 wait 60               -> queued t1 place 1 behind alice until 61
         2  acquire db alice 10 refresh             -> granted 1
        11  acquire db+x alice 10 refresh           -> granted 1 2
        21  expire                                  -> expired 1, expired 2, served t1 with 3, swept
    ",
    );
}

#[test]
fn a_quota_that_is_used_up_does_not_keep_a_holder_from_refreshing() {
    let mut world = World::new(Limits { leases_per_principal: Some(2), ..Limits::default() });
    world.play(
        "
         0  acquire a+b alice 10 refresh            -> granted 1 2
         1  acquire a+b alice 10 refresh            -> granted 1 2
         2  acquire a+b+c alice 10 refresh          -> quota 2
    ",
    );
}

#[test]
fn an_upgrade_does_not_pass_who_is_let_in_on_the_way() {
    // The writer's patience is over, which lets in the reader behind it: now there are two readers.
    check(
        "
         0  acquire db/shared alice 50              -> granted 1
         0  acquire db bob 10 wait 5                -> queued t1 place 1 behind alice until 5
         0  acquire db/shared carol 10 wait 60      -> queued t2 place 2 behind bob until 60
         5  upgrade 1 exclusive                     -> left t1 TimedOut, served t2 with 2, held by carol until 15, 0 waiting
    ",
    );
}
