//! The filter as the system wants it: a small program that looks at one call.

use libc::{c_int, c_ushort, sock_filter};

use crate::calls::{Fate, RULES, Rule, When};

/// Instructions of the old packet filter: a load, two kinds of jump, and the end.
const LOAD: c_ushort = 0x20;
const IF_EQUAL: c_ushort = 0x15;
#[cfg(target_arch = "x86_64")]
const IF_AT_LEAST: c_ushort = 0x35;
const IF_ANY_BIT: c_ushort = 0x45;
const RETURN: c_ushort = 0x06;

/// Where things are in what the program is given.
const NUMBER: u32 = 0;
const MACHINE: u32 = 4;
const ARGUMENTS: u32 = 16;

/// How the system names the machine that our numbers are for: a program for another one has other numbers.
#[cfg(target_arch = "x86_64")]
const OURS: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const OURS: u32 = 0xc000_00b7;

/// From here on are numbers of a second kind, which nobody uses but to get around a filter.
#[cfg(target_arch = "x86_64")]
const SECOND_KIND: u32 = 0x4000_0000;

pub(crate) fn program() -> Vec<sock_filter> {
    let mut program = vec![
        load(MACHINE),
        jump(IF_EQUAL, OURS, 1, 0),
        // A program for another machine: it does not run, rather than unseen.
        end(failing(libc::ENOSYS)),
        load(NUMBER),
    ];
    #[cfg(target_arch = "x86_64")]
    program.extend([jump(IF_AT_LEAST, SECOND_KIND, 0, 1), end(failing(libc::ENOSYS))]);
    RULES.iter().for_each(|rule| add(&mut program, rule));
    program.push(end(libc::SECCOMP_RET_ALLOW));
    program
}

fn add(program: &mut Vec<sock_filter>, rule: &Rule) {
    let number = u32::try_from(rule.number).unwrap_or(u32::MAX);
    let fate = match rule.fate {
        Fate::Told(_) => libc::SECCOMP_RET_USER_NOTIF,
        Fate::Refused(error) => failing(error),
    };
    let (argument, bits) = match rule.when {
        When::Always => return program.extend([jump(IF_EQUAL, number, 0, 1), end(fate)]),
        When::Any { argument, of } => (argument, of),
    };
    program.extend([
        jump(IF_EQUAL, number, 0, 4),
        // The lower half: these are machines that have it first.
        load(ARGUMENTS + 8 * argument),
        jump(IF_ANY_BIT, bits.cast_unsigned(), 0, 1),
        end(fate),
        end(libc::SECCOMP_RET_ALLOW),
    ]);
}

fn failing(error: c_int) -> u32 {
    libc::SECCOMP_RET_ERRNO | (error.cast_unsigned() & libc::SECCOMP_RET_DATA)
}

fn load(place: u32) -> sock_filter {
    sock_filter { code: LOAD, jt: 0, jf: 0, k: place }
}

fn jump(how: c_ushort, value: u32, if_true: u8, if_false: u8) -> sock_filter {
    sock_filter { code: how, jt: if_true, jf: if_false, k: value }
}

fn end(fate: u32) -> sock_filter {
    sock_filter { code: RETURN, jt: 0, jf: 0, k: fate }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the program as the system does.
    fn fate(number: i64, arguments: [u32; 6], machine: u32) -> u32 {
        let (program, mut accumulator, mut at) = (program(), 0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            at += 1;
            let does = match code {
                LOAD => {
                    accumulator = match k {
                        NUMBER => u32::try_from(number).unwrap(),
                        MACHINE => machine,
                        place => arguments[usize::try_from((place - ARGUMENTS) / 8).unwrap()],
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

    const TOLD: u32 = libc::SECCOMP_RET_USER_NOTIF;
    const ALLOWED: u32 = libc::SECCOMP_RET_ALLOW;

    fn open(flags: i32) -> u32 {
        fate(libc::SYS_openat, [0, 0, flags.cast_unsigned(), 0, 0, 0], OURS)
    }

    // S4-15
    #[test]
    fn syscalls_that_may_change_a_file_are_notified_and_reads_are_not() {
        for flags in [libc::O_RDONLY, libc::O_CLOEXEC, libc::O_DIRECTORY, libc::O_APPEND, libc::O_NOFOLLOW] {
            assert_eq!(open(flags), ALLOWED, "{flags:o}");
        }
        for flags in [libc::O_WRONLY, libc::O_RDWR, libc::O_CREAT, libc::O_TRUNC, libc::O_TMPFILE | 1, 3] {
            assert_eq!(open(flags), TOLD, "{flags:o}");
        }
        for number in [libc::SYS_openat2, libc::SYS_renameat2, libc::SYS_linkat, libc::SYS_symlinkat] {
            assert_eq!(fate(number, [0; 6], OURS), TOLD);
        }
        for number in [libc::SYS_truncate, libc::SYS_fchmodat, libc::SYS_fchmod, libc::SYS_execve] {
            assert_eq!(fate(number, [0; 6], OURS), TOLD);
        }
        for number in [libc::SYS_read, libc::SYS_write, libc::SYS_mkdirat, libc::SYS_close, libc::SYS_statx] {
            assert_eq!(fate(number, [u32::MAX; 6], OURS), ALLOWED);
        }
    }

    // H1
    #[test]
    fn removing_a_file_or_a_folder_is_notified() {
        let removed = |flags: i32| fate(libc::SYS_unlinkat, [0, 0, flags.cast_unsigned(), 0, 0, 0], OURS);
        assert_eq!((removed(0), removed(libc::AT_REMOVEDIR)), (TOLD, TOLD));
        #[cfg(target_arch = "x86_64")]
        assert_eq!(fate(libc::SYS_rmdir, [0; 6], OURS), TOLD);
    }

    #[test]
    fn syscalls_that_would_bypass_the_filter_fail() {
        let nothing = failing(libc::ENOSYS);
        assert_eq!(fate(libc::SYS_io_uring_setup, [0; 6], OURS), nothing);
        assert_eq!(fate(libc::SYS_read, [0; 6], OURS ^ 1), nothing, "another machine");
        #[cfg(target_arch = "x86_64")]
        assert_eq!(fate(i64::from(SECOND_KIND), [0; 6], OURS), nothing);
        let by_number = |flags: u32| fate(libc::SYS_open_by_handle_at, [0, 0, flags, 0, 0, 0], OURS);
        assert_eq!((by_number(0), by_number(1)), (ALLOWED, failing(libc::EPERM)));
    }
}
