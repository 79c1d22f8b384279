//! The doctor where the system is not as usual.

use crate::doctor_stage::{doctor, installed, nothing_stays};
use crate::wrapped::Tracer;

#[test]
fn on_a_slow_disk_the_doctor_waits_until_its_sessions_are_gone() {
    let stage = installed(&["claude"]);
    assert_eq!(stage.run(&["doctor"]).code, Some(0));
    let daemon = stage.daemon().unwrap();
    let _tracer = Tracer::attach_to(daemon, "fdatasync:delay_enter=150000");
    let found = doctor(&stage);
    assert_eq!((found.1.code, found.gaps()), (Some(0), vec![]), "{:?}", found.1);
    nothing_stays(&stage);
}
