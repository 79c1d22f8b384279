//! The filter as the system wants it: a small program that looks at one call.

use libc::{c_int, c_ushort, sock_filter};

use crate::syscalls::{RULES, Rule, RuleAction, RuleCondition};

/// Instructions of the old packet filter: a load, two kinds of jump, and the end.
const LOAD: c_ushort = 0x20;
const IF_EQUAL: c_ushort = 0x15;
#[cfg(target_arch = "x86_64")]
const IF_GREATER_OR_EQUAL: c_ushort = 0x35;
const IF_ANY_BIT: c_ushort = 0x45;
const RETURN: c_ushort = 0x06;

/// Where things are in what the program is given.
const NUMBER_OFFSET: u32 = 0;
const ARCHITECTURE_OFFSET: u32 = 4;
const ARGUMENTS_OFFSET: u32 = 16;

/// How the system names the machine that our numbers are for: a program for another one has other numbers.
#[cfg(target_arch = "x86_64")]
const NATIVE_ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const OURS: u32 = 0xc000_00b7;

/// From here on are numbers of a second kind, which nobody uses but to get around a filter.
#[cfg(target_arch = "x86_64")]
const X32_SYSCALL_BIT: u32 = 0x4000_0000;

pub(crate) fn build_filter() -> Vec<sock_filter> {
    let mut program = vec![
        load(ARCHITECTURE_OFFSET),
        jump(IF_EQUAL, NATIVE_ARCHITECTURE, 1, 0),
        // A program for another machine: it does not run, rather than unseen.
        return_action(errno_action(libc::ENOSYS)),
        load(NUMBER_OFFSET),
    ];
    #[cfg(target_arch = "x86_64")]
    program.extend([
        jump(IF_GREATER_OR_EQUAL, X32_SYSCALL_BIT, 0, 1),
        return_action(errno_action(libc::ENOSYS)),
    ]);
    RULES.iter().for_each(|rule| add(&mut program, rule));
    program.push(return_action(libc::SECCOMP_RET_ALLOW));
    program
}

fn add(program: &mut Vec<sock_filter>, rule: &Rule) {
    let number = u32::try_from(rule.number).unwrap_or(u32::MAX);
    let action = match rule.action {
        RuleAction::Notify(_) => libc::SECCOMP_RET_USER_NOTIF,
        RuleAction::Fail(error) => errno_action(error),
    };
    let (argument, bits) = match rule.condition {
        RuleCondition::Always => {
            return program.extend([jump(IF_EQUAL, number, 0, 1), return_action(action)]);
        }
        RuleCondition::AnyBitSet { argument, bits: of } => (argument, of),
    };
    program.extend([
        jump(IF_EQUAL, number, 0, 4),
        // The lower half: these are machines that have it first.
        load(ARGUMENTS_OFFSET + 8 * argument),
        jump(IF_ANY_BIT, bits.cast_unsigned(), 0, 1),
        return_action(action),
        return_action(libc::SECCOMP_RET_ALLOW),
    ]);
}

fn errno_action(error: c_int) -> u32 {
    libc::SECCOMP_RET_ERRNO | (error.cast_unsigned() & libc::SECCOMP_RET_DATA)
}

fn load(place: u32) -> sock_filter {
    sock_filter { code: LOAD, jt: 0, jf: 0, k: place }
}

fn jump(how: c_ushort, value: u32, if_true: u8, if_false: u8) -> sock_filter {
    sock_filter { code: how, jt: if_true, jf: if_false, k: value }
}

fn return_action(action: u32) -> sock_filter {
    sock_filter { code: RETURN, jt: 0, jf: 0, k: action }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the program as the system does.
    fn action_of(number: i64, arguments: [u32; 6], machine: u32) -> u32 {
        let (program, mut accumulator, mut at) = (build_filter(), 0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            at += 1;
            let does = match code {
                LOAD => {
                    accumulator = match k {
                        NUMBER_OFFSET => u32::try_from(number).unwrap(),
                        ARCHITECTURE_OFFSET => machine,
                        place => arguments[usize::try_from((place - ARGUMENTS_OFFSET) / 8).unwrap()],
                    };
                    continue;
                }
                RETURN => return k,
                IF_EQUAL => accumulator == k,
                IF_ANY_BIT => accumulator & k != 0,
                _ => accumulator >= k,
            };
            at += usize::from(if does { jt } else { jf });
        }
    }

    const NOTIFIED: u32 = libc::SECCOMP_RET_USER_NOTIF;
    const ALLOWED: u32 = libc::SECCOMP_RET_ALLOW;

    fn open(flags: i32) -> u32 {
        action_of(libc::SYS_openat, [0, 0, flags.cast_unsigned(), 0, 0, 0], NATIVE_ARCHITECTURE)
    }

    // S4-15
    #[test]
    fn syscalls_that_may_change_a_file_are_notified_and_reads_are_not() {
        for flags in [libc::O_RDONLY, libc::O_CLOEXEC, libc::O_DIRECTORY, libc::O_APPEND, libc::O_NOFOLLOW] {
            assert_eq!(open(flags), ALLOWED, "{flags:o}");
        }
        for flags in [libc::O_WRONLY, libc::O_RDWR, libc::O_CREAT, libc::O_TRUNC, libc::O_TMPFILE | 1, 3] {
            assert_eq!(open(flags), NOTIFIED, "{flags:o}");
        }
        for number in [libc::SYS_openat2, libc::SYS_renameat2, libc::SYS_linkat, libc::SYS_symlinkat] {
            assert_eq!(action_of(number, [0; 6], NATIVE_ARCHITECTURE), NOTIFIED);
        }
        for number in [libc::SYS_truncate, libc::SYS_fchmodat, libc::SYS_fchmod, libc::SYS_execve] {
            assert_eq!(action_of(number, [0; 6], NATIVE_ARCHITECTURE), NOTIFIED);
        }
        for number in [libc::SYS_read, libc::SYS_write, libc::SYS_mkdirat, libc::SYS_close, libc::SYS_statx] {
            assert_eq!(action_of(number, [u32::MAX; 6], NATIVE_ARCHITECTURE), ALLOWED);
        }
    }

    // H1
    #[test]
    fn removing_a_file_or_a_folder_is_notified() {
        let removed = |flags: i32| {
            action_of(libc::SYS_unlinkat, [0, 0, flags.cast_unsigned(), 0, 0, 0], NATIVE_ARCHITECTURE)
        };
        assert_eq!((removed(0), removed(libc::AT_REMOVEDIR)), (NOTIFIED, NOTIFIED));
        #[cfg(target_arch = "x86_64")]
        assert_eq!(action_of(libc::SYS_rmdir, [0; 6], NATIVE_ARCHITECTURE), NOTIFIED);
    }

    #[test]
    fn syscalls_that_would_bypass_the_filter_fail() {
        let nothing = errno_action(libc::ENOSYS);
        assert_eq!(action_of(libc::SYS_io_uring_setup, [0; 6], NATIVE_ARCHITECTURE), nothing);
        assert_eq!(action_of(libc::SYS_read, [0; 6], NATIVE_ARCHITECTURE ^ 1), nothing, "another machine");
        #[cfg(target_arch = "x86_64")]
        assert_eq!(action_of(i64::from(X32_SYSCALL_BIT), [0; 6], NATIVE_ARCHITECTURE), nothing);
        let by_number =
            |flags: u32| action_of(libc::SYS_open_by_handle_at, [0, 0, flags, 0, 0, 0], NATIVE_ARCHITECTURE);
        assert_eq!((by_number(0), by_number(1)), (ALLOWED, errno_action(libc::EPERM)));
    }
}
