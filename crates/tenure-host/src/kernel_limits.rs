//! Features and limits of the operating system that the guard and the audit need.

use std::fs;

/// Whether processes can be made to wait for an answer at their calls. Nothing, where the system does not say.
pub fn has_seccomp_user_notification() -> Option<bool> {
    fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail")
        .ok()
        .map(|text| has_notification_action(&text))
}

/// Who may look into another process, as Yama has it: 0 anybody of the same user, 1 those above it, 2 and 3 next to nobody.
/// Without Yama it is 0.
pub fn ptrace_scope() -> u32 {
    number("/proc/sys/kernel/yama/ptrace_scope").and_then(|scope| u32::try_from(scope).ok()).unwrap_or(0)
}

/// How many folders one user can have watched. Nothing, where the system does not say.
pub fn max_inotify_watches() -> Option<u64> {
    number("/proc/sys/fs/inotify/max_user_watches")
}

fn has_notification_action(actions: &str) -> bool {
    actions.split_whitespace().any(|action| action == "user_notif")
}

fn number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seccomp_action_is_matched_by_its_whole_name() {
        assert!(has_notification_action("kill_process trap errno user_notif trace log allow\n"));
        assert!(!has_notification_action("kill_process trap errno trace log allow\n"));
        assert!(!has_notification_action("user_notification"));
    }
}
