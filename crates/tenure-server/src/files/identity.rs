//! How a process is named in the ledger.

use tenure_gate::process::Process;

/// `boot:namespace:pid:started:user`.
pub(super) fn text_of(process: &Process) -> String {
    let Process { boot, namespace, pid, started, user } = process;
    format!("{boot}:{namespace}:{pid}:{started}:{user}")
}

/// The process in such a text.
pub(super) fn process_in(text: &str) -> Option<Process> {
    let mut parts = text.split(':');
    let process = Process {
        boot: parts.next()?.to_owned(),
        namespace: parts.next()?.parse().ok()?,
        pid: parts.next()?.parse().ok()?,
        started: parts.next()?.parse().ok()?,
        user: parts.next()?.parse().ok()?,
    };
    parts.next().is_none().then_some(process)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_found_again_by_its_text() {
        let own = Process::own().expect("this process");
        assert_eq!(process_in(&text_of(&own)), Some(own));
        assert_eq!(process_in("a:1:2:3"), None);
        assert_eq!(process_in("a:1:2:3:4:5"), None);
    }
}
