//! Identity of a process, and its text in records: `boot:namespace:pid:started:user`.

use std::fmt;
use std::sync::Arc;

use crate::rules::{InvalidInput, is_storable_text};

/// One process of one machine. A pid alone is reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId {
    pub boot: BootId,
    /// Its pid namespace, or that of the observer if its own is not visible.
    pub namespace: u64,
    /// As the observer sees it.
    pub pid: u32,
    /// Start time in ticks since the boot.
    pub started: u64,
    pub user: u32,
}

impl ProcessId {
    /// Parses exactly the texts that [`fmt::Display`] writes, so that a record keeps its bytes.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let process = Self {
            boot: BootId::parse(parts.next()?)?,
            namespace: parts.next()?.parse().ok()?,
            pid: parts.next()?.parse().ok()?,
            started: parts.next()?.parse().ok()?,
            user: parts.next()?.parse().ok()?,
        };
        (process.to_string() == text).then_some(process)
    }

    /// Whether both are the same process. A process can change its user.
    pub fn is_same(&self, other: &Self) -> bool {
        (self.pid, self.started, self.boot) == (other.pid, other.started, other.boot)
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { boot, namespace, pid, started, user } = self;
        write!(formatter, "{boot}:{namespace}:{pid}:{started}:{user}")
    }
}

/// UUID of one boot of a machine. None of its processes survive that boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootId([u8; 16]);

impl BootId {
    /// Parses a UUID in the form in which Linux shows it: lower case, with hyphens.
    pub fn parse(text: &str) -> Option<Self> {
        let number = u128::from_str_radix(&text.replace('-', ""), 16).ok()?;
        let boot = Self(number.to_be_bytes());
        (boot.to_string() == text).then_some(boot)
    }
}

impl fmt::Display for BootId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                formatter.write_str("-")?;
            }
            write!(formatter, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// The process of a file session, as records name it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordedProcess(Recorded);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Recorded {
    Id(ProcessId),
    /// Text in another form. It identifies no process of this machine, and is kept as it is.
    Other(Arc<str>),
}

impl RecordedProcess {
    /// Accepts every text that can be stored: ledgers may hold one that is no [`ProcessId`].
    pub fn parse(text: &str) -> Result<Self, InvalidInput> {
        match ProcessId::parse(text) {
            Some(process) => Ok(process.into()),
            None if is_storable_text(text) => Ok(Self(Recorded::Other(text.into()))),
            None => Err(InvalidInput::new("process", "has over 4096 bytes, or a control character")),
        }
    }

    /// `None` if the text is no [`ProcessId`].
    pub fn id(&self) -> Option<ProcessId> {
        match &self.0 {
            Recorded::Id(process) => Some(*process),
            Recorded::Other(_) => None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(&self.0, Recorded::Other(text) if text.is_empty())
    }

    pub(crate) fn byte_size(&self) -> usize {
        match &self.0 {
            Recorded::Id(process) => process.to_string().len(),
            Recorded::Other(text) => text.len(),
        }
    }
}

impl From<ProcessId> for RecordedProcess {
    fn from(process: ProcessId) -> Self {
        Self(Recorded::Id(process))
    }
}

/// No process: the empty text.
impl Default for RecordedProcess {
    fn default() -> Self {
        Self(Recorded::Other(Arc::default()))
    }
}

impl fmt::Display for RecordedProcess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Recorded::Id(process) => process.fmt(formatter),
            Recorded::Other(text) => formatter.write_str(text),
        }
    }
}

/// Its text, as in logs of the simulator, whose digests must not change.
impl fmt::Debug for RecordedProcess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOT: &str = "0f3a5c1e-0000-4b2d-8e9f-00a1b2c3d4e5";

    #[test]
    fn process_id_keeps_its_text() {
        let text = format!("{BOOT}:4026531836:4170:{}:{}", u64::MAX, u32::MAX);
        let process = ProcessId::parse(&text).expect("a process");
        assert_eq!((process.namespace, process.pid), (4_026_531_836, 4170));
        assert_eq!((process.started, process.user), (u64::MAX, u32::MAX));
        assert_eq!((process.to_string(), process.boot.to_string()), (text.clone(), BOOT.to_owned()));
        assert!(process.is_same(&ProcessId { user: 0, namespace: 1, ..process }));
        assert!(!process.is_same(&ProcessId { started: 1, ..process }));
        let recorded = RecordedProcess::parse(&text).expect("a text");
        assert_eq!((recorded.id(), recorded.byte_size()), (Some(process), text.len()));
        assert_eq!((recorded.to_string(), recorded), (text, process.into()));
    }

    #[test]
    fn text_in_another_form_is_kept_and_identifies_no_process() {
        let forms = [
            String::new(),
            "boot/7/1".to_owned(),
            "a:1:2:3:4".to_owned(),
            format!("{BOOT}:1:2:3"),
            format!("{BOOT}:1:2:3:4:5"),
            format!("{BOOT}:+1:2:3:4"),
            format!("{BOOT}:1:02:3:4"),
            format!("{BOOT}:1:4294967296:3:4"),
            format!("{}:1:2:3:4", BOOT.to_uppercase()),
            format!("{}:1:2:3:4", BOOT.replace('-', "")),
        ];
        for text in forms {
            let recorded = RecordedProcess::parse(&text).expect("a text");
            assert_eq!((recorded.id(), recorded.byte_size()), (None, text.len()));
            assert_eq!(
                (recorded.is_empty(), format!("{recorded:?}")),
                (text.is_empty(), format!("{text:?}"))
            );
            assert_eq!(recorded.to_string(), text);
        }
        assert_eq!(RecordedProcess::parse(""), Ok(RecordedProcess::default()));
        for text in ["a\nb", "\u{7}", &"x".repeat(5_000)] {
            assert_eq!(RecordedProcess::parse(text).expect_err("not storable").field, "process");
        }
    }
}
