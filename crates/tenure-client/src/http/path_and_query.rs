//! Addresses of requests.

use std::fmt::Write as _;

/// A path and what is asked of it.
pub(crate) struct PathAndQuery {
    text: String,
    is_first: bool,
}

impl PathAndQuery {
    pub(crate) fn new(path: &str) -> Self {
        Self { text: path.to_owned(), is_first: true }
    }

    /// A path whose last parts come from outside: `/v1/leases`, `id`, `renew`.
    pub(crate) fn path(root: &str, parts: &[&str]) -> Self {
        let mut query = Self::new(root);
        for part in parts {
            query.text.push('/');
            query.push_encoded(part);
        }
        query
    }

    pub(crate) fn with(mut self, name: &str, value: Option<&str>) -> Self {
        if let Some(value) = value {
            self.text.push(if std::mem::take(&mut self.is_first) { '?' } else { '&' });
            self.text.push_str(name);
            self.text.push('=');
            self.push_encoded(value);
        }
        self
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    fn push_encoded(&mut self, value: &str) {
        for byte in value.bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    self.text.push(char::from(byte))
                }
                _ => write!(self.text, "%{byte:02X}").expect("a string takes everything"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PathAndQuery;

    #[test]
    fn path_segments_and_parameters_are_percent_encoded() {
        let query = PathAndQuery::path("/v1/leases", &["a/../b?c"])
            .with("resource", Some("a:b&c=d #é"))
            .with("holder", None);
        let text = query.with("limit", Some("3")).into_text();
        assert_eq!(text, "/v1/leases/a%2F..%2Fb%3Fc?resource=a%3Ab%26c%3Dd%20%23%C3%A9&limit=3");
    }
}
