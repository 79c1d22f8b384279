//! Server-sent events: from bytes to messages.

/// One message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SseMessage {
    /// What goes into `Last-Event-ID`.
    pub(super) id: Option<String>,
    /// Empty if the message only moves the id on.
    pub(super) data: String,
}

/// A message longer than this is no event of ours.
const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// Puts lines together as bytes come in, in whatever pieces.
#[derive(Default)]
pub(super) struct SseParser {
    bytes: Vec<u8>,
    id: Option<String>,
    data: String,
    has_data: bool,
}

/// A line or a message without an end.
#[derive(Debug)]
pub(super) struct MessageTooLong;

impl SseParser {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message that is complete.
    pub(super) fn next(&mut self) -> Result<Option<SseMessage>, MessageTooLong> {
        while let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
            let rest = self.bytes.split_off(end + 1);
            let line = std::mem::replace(&mut self.bytes, rest);
            let line = String::from_utf8_lossy(&line[..end]).into_owned();
            if let Some(message) = self.line(line.strip_suffix('\r').unwrap_or(&line)) {
                return Ok(Some(message));
            }
        }
        if self.bytes.len() + self.data.len() > MAX_MESSAGE_BYTES { Err(MessageTooLong) } else { Ok(None) }
    }

    fn line(&mut self, line: &str) -> Option<SseMessage> {
        if line.is_empty() {
            let id = self.id.take();
            let has_content = id.is_some() || self.has_data;
            self.has_data = false;
            return has_content.then(|| SseMessage { id, data: std::mem::take(&mut self.data) });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => self.id = Some(value.to_owned()),
            "data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.has_data = true;
                self.data.push_str(value);
            }
            // A line that begins with a colon says only that the connection lives.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(pieces: &[&str]) -> Vec<(Option<String>, String)> {
        let (mut parser, mut found) = (SseParser::default(), Vec::new());
        for piece in pieces {
            parser.push(piece.as_bytes());
            while let Some(SseMessage { id, data }) = parser.next().expect("short lines") {
                found.push((id, data));
            }
        }
        found
    }

    #[test]
    fn messages_are_reassembled_from_any_chunks() {
        let text = ": hello\n\nid: 1-7\ndata: {\"a\":\ndata: 1}\n\nid:1-8\r\ndata:x\r\n\r\nid: 1-9\n\n";
        let whole = messages(&[text]);
        let expected = [(Some("1-7"), "{\"a\":\n1}"), (Some("1-8"), "x"), (Some("1-9"), "")];
        let expected = expected.map(|(id, data)| (id.map(str::to_owned), data.to_owned()));
        assert_eq!(whole, expected);
        for cut in 1..text.len() {
            assert_eq!(messages(&[&text[..cut], &text[cut..]]), whole, "cut at {cut}");
        }
    }

    #[test]
    fn incomplete_message_is_not_returned() {
        assert_eq!(messages(&["id: 1-7\ndata: x\n"]), []);
    }

    #[test]
    fn oversized_message_is_rejected() {
        let mut parser = SseParser::default();
        parser.push(&vec![b'x'; MAX_MESSAGE_BYTES + 1]);
        assert!(parser.next().is_err());
    }
}
