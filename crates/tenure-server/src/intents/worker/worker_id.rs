//! How a worker is called: `worker:BOOT:NAMESPACE:PID:START`. Whoever runs on the same boot and in the same namespace of
//! processes can tell whether it is dead.

use tenure_core::kernel::Holder;

use crate::http::response::HttpError;

const MAX_BYTES: usize = 128;

/// The name of a worker, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WorkerId {
    pub(super) holder: Holder,
    place: (String, String),
}

impl WorkerId {
    pub(super) fn parse(field: &'static str, text: &str) -> Result<Self, HttpError> {
        let wrong = || HttpError::invalid(field, "must be `worker:BOOT:NAMESPACE:PID:START`");
        let parts: Vec<_> = text.split(':').collect();
        let ["worker", boot, namespace, process, start] = parts[..] else { return Err(wrong()) };
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let is_sound = !boot.is_empty()
            && boot.bytes().all(is_word)
            && [namespace, process, start].into_iter().all(is_number)
            && text.len() <= MAX_BYTES;
        if !is_sound {
            return Err(wrong());
        }
        let place = (boot.to_owned(), namespace.to_owned());
        Ok(Self { holder: Holder::parse(text)?, place })
    }

    /// Whether both run on the same boot of one machine, and see the same processes.
    pub(super) fn shares_namespace(&self, other: &Self) -> bool {
        self.place == other.place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_id_is_parsed_strictly() {
        let id = |text| WorkerId::parse("worker", text);
        let one = id("worker:0b2a-4f:4026531836:17:99").unwrap_or_else(|_| panic!());
        assert!(one.shares_namespace(&id("worker:0b2a-4f:4026531836:18:1").unwrap_or_else(|_| panic!())));
        assert!(!one.shares_namespace(&id("worker:0b2a-4e:4026531836:17:99").unwrap_or_else(|_| panic!())));
        assert!(!one.shares_namespace(&id("worker:0b2a-4f:4026531837:17:99").unwrap_or_else(|_| panic!())));
        for text in [
            "",
            "worker",
            "worker:a:1:2",
            "worker:a:1:2:3:4",
            "worker::1:2:3",
            "worker:a::2:3",
            "worker:a:x:2:3",
            "worker:a:1:-2:3",
            "worker:a b:1:2:3",
            "ci:a:1:2:3",
            "worker:a\n:1:2:3",
        ] {
            assert!(id(text).is_err(), "{text}");
        }
        assert!(id(&format!("worker:{}:1:2:3", "a".repeat(128))).is_err());
    }
}
