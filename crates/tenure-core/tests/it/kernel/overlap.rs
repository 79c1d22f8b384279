//! Stories of resources that are, in part, the same thing.

use crate::scenario::check_scenario;

#[test]
fn folder_and_its_contents_are_not_held_by_two_holders() {
    check_scenario(
        "
         0  acquire FILE:src/ alice 10            -> granted 1
         0  acquire FILE:src/lib.rs bob 10        -> held by alice until 10, 0 waiting
         0  acquire FILE:src bob 10               -> granted 2
         0  acquire FILE:source bob 10            -> granted 3
         1  release 1                             -> released 1
         1  acquire FILE:src/lib.rs bob 10        -> granted 4
         1  acquire FILE:src/ alice 10            -> held by bob until 11, 0 waiting
         1  acquire FILE:src/*.rs alice 10        -> held by bob until 11, 0 waiting
         1  acquire FILE:src/a/ alice 10          -> granted 5
    ",
    );
}

#[test]
fn names_of_other_kinds_do_not_overlap() {
    check_scenario(
        "
         0  acquire deploy:a/ alice 10            -> granted 1
         0  acquire deploy:a/b bob 10             -> granted 2
         0  acquire deploy:* carol 10             -> granted 3
    ",
    );
}

#[test]
fn waiter_for_a_file_is_served_when_its_folder_is_released() {
    check_scenario(
        "
         0  acquire FILE:src/ alice 10            -> granted 1
         0  acquire FILE:src/a bob 10 wait 60     -> queued t1 place 1 behind alice until 60
         0  acquire FILE:src/b carol 10 wait 60   -> queued t2 place 1 behind alice until 60
         0  acquire FILE:src/ dave 10 wait 60     -> queued t3 place 1 behind alice bob carol until 60
         1  acquire FILE:src/c erin 10            -> held by alice until 10, 0 waiting
         1  release 1                             -> served t1 with 2, served t2 with 3, released 1
         1  acquire FILE:src/c erin 10            -> held by dave until 60, 0 waiting
         2  release 2                             -> released 2
         2  release 3                             -> served t3 with 4, released 3
    ",
    );
}

#[test]
fn shared_folder_and_shared_contents_are_compatible() {
    check_scenario(
        "
         0  acquire FILE:src//shared alice 10      -> granted 1
         0  acquire FILE:src/a/shared bob 10       -> granted 2
         0  acquire FILE:src/a carol 10            -> held by bob until 10, 0 waiting
         0  upgrade 2 exclusive                    -> held by alice until 10, 0 waiting
         1  release 1                              -> released 1
         1  upgrade 2 exclusive                    -> revoked 2 Transferred, 2 continues as 3
    ",
    );
}

#[test]
fn expired_lease_below_a_folder_does_not_block_it() {
    check_scenario(
        "
         0  acquire FILE:src/a alice 10            -> granted 1
         0  acquire FILE:src/b bob 20              -> granted 2
        10  acquire FILE:src/ carol 10             -> expired 1, held by bob until 20, 0 waiting
        20  acquire FILE:src/ carol 10             -> expired 2, granted 3
    ",
    );
}

#[test]
fn deadlock_through_a_folder_is_rejected() {
    check_scenario(
        "
         0  acquire FILE:src/a alice 60            -> granted 1
         0  acquire FILE:doc/b bob 60              -> granted 2
         0  acquire FILE:doc/ alice 60 wait 60     -> queued t1 place 1 behind bob until 60
         0  acquire FILE:src/ bob 60 wait 60       -> deadlock bob alice
    ",
    );
}
