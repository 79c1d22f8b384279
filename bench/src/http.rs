//! HTTP/1.1 over a keep-alive connection: one request at a time, as a client of an ordinary library sends it.

use std::borrow::Cow;
use std::io::Write as _;

use crate::error::BenchError;
use crate::wire::{Endpoint, WireConnection, decimal, line};

pub struct HttpConnection {
    wire: WireConnection,
    /// Header lines of every request, each with its CR LF.
    headers: String,
}

impl HttpConnection {
    /// `authorization` is the value of that header, if requests have one.
    pub async fn connect(endpoint: &Endpoint, authorization: Option<&str>) -> Result<Self, BenchError> {
        let wire = WireConnection::connect(endpoint).await?;
        let host = match endpoint {
            Endpoint::Tcp(address) => address.to_string(),
            Endpoint::Local(_) => "localhost".to_owned(),
        };
        let mut headers = format!("host: {host}\r\ncontent-type: application/json\r\n");
        if let Some(value) = authorization {
            headers.push_str("authorization: ");
            headers.push_str(value);
            headers.push_str("\r\n");
        }
        Ok(Self { wire, headers })
    }

    /// Sends a request and hands status and body of its response to `read`. `path` is in parts, which are joined.
    pub async fn exchange<T>(
        &mut self,
        method: &str,
        path: &[&str],
        body: &[u8],
        mut read: impl FnMut(u16, &[u8]) -> Result<T, BenchError>,
    ) -> Result<T, BenchError> {
        let outgoing = &mut self.wire.outgoing;
        outgoing.extend_from_slice(method.as_bytes());
        outgoing.push(b' ');
        path.iter().for_each(|part| outgoing.extend_from_slice(part.as_bytes()));
        write!(outgoing, " HTTP/1.1\r\n{}content-length: {}\r\n\r\n", self.headers, body.len())
            .expect("memory can be written");
        outgoing.extend_from_slice(body);
        self.wire.flush().await?;
        self.wire
            .receive(|bytes| {
                let Some((length, response)) = HttpResponse::parse(bytes)? else { return Ok(None) };
                Ok(Some((length, read(response.status, &response.body)?)))
            })
            .await
    }

    /// The connection itself, for a protocol that takes it over.
    pub fn into_wire(self) -> (WireConnection, String) {
        (self.wire, self.headers)
    }
}

pub struct HttpResponse<'a> {
    pub status: u16,
    pub body: Cow<'a, [u8]>,
}

impl<'a> HttpResponse<'a> {
    /// A whole response at the start of `bytes`, with its length.
    fn parse(bytes: &'a [u8]) -> Result<Option<(usize, Self)>, BenchError> {
        let Some(head) = ResponseHead::parse(bytes)? else { return Ok(None) };
        let rest = &bytes[head.length..];
        let (body, length) = if head.is_chunked {
            match chunked_body(rest)? {
                None => return Ok(None),
                Some((body, length)) => (Cow::Owned(body), length),
            }
        } else {
            match rest.get(..head.content_length) {
                None => return Ok(None),
                Some(body) => (Cow::Borrowed(body), head.content_length),
            }
        };
        Ok(Some((head.length + length, Self { status: head.status, body })))
    }
}

/// What a client must know of a response before its body.
pub struct ResponseHead {
    pub status: u16,
    /// The length of status line and headers, with the empty line.
    pub length: usize,
    content_length: usize,
    is_chunked: bool,
}

impl ResponseHead {
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, BenchError> {
        let Some((first, mut length)) = line(bytes) else { return Ok(None) };
        let malformed = || BenchError::unexpected("an HTTP request", first);
        let status = first.get(9..12).and_then(decimal).ok_or_else(malformed)?;
        let (mut content_length, mut is_chunked) = (0, false);
        loop {
            let Some((header, header_length)) = line(&bytes[length..]) else { return Ok(None) };
            length += header_length;
            if header.is_empty() {
                return Ok(Some(Self { status, length, content_length, is_chunked }));
            }
            let Some(colon) = header.iter().position(|byte| *byte == b':') else { return Err(malformed()) };
            let (name, value) = (&header[..colon], &header[colon + 1..]);
            if name.eq_ignore_ascii_case(b"content-length") {
                content_length = decimal(value).ok_or_else(malformed)?;
            } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
                is_chunked = value.trim_ascii().eq_ignore_ascii_case(b"chunked");
            }
        }
    }
}

/// The chunks at the start of `bytes`, joined, and their length with the last one.
fn chunked_body(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, BenchError> {
    let (mut body, mut position) = (Vec::new(), 0);
    loop {
        let Some((size, length)) = line(&bytes[position..]) else { return Ok(None) };
        let size =
            std::str::from_utf8(size).ok().and_then(|size| usize::from_str_radix(size.trim(), 16).ok());
        let size = size.ok_or_else(|| BenchError::unexpected("an HTTP request", bytes))?;
        let start = position + length;
        // Behind the chunk, or in place of trailers, stands an empty line.
        let Some(chunk) = bytes[start..].get(..size + 2) else { return Ok(None) };
        if !chunk.ends_with(b"\r\n") {
            return Err(BenchError::unexpected("an HTTP request with trailers", bytes));
        }
        body.extend_from_slice(&chunk[..size]);
        position = start + size + 2;
        if size == 0 {
            return Ok(Some((body, position)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<(usize, u16, String)> {
        let (length, response) = HttpResponse::parse(text.as_bytes()).expect("HTTP")?;
        Some((length, response.status, String::from_utf8_lossy(&response.body).into_owned()))
    }

    #[test]
    fn a_response_ends_where_its_content_length_says() {
        let text = "HTTP/1.1 201 Created\r\nContent-Length: 5\r\ndate: x\r\n\r\nhello";
        assert_eq!(parse(&format!("{text}HTTP/1.1 200")), Some((text.len(), 201, "hello".to_owned())));
        for end in 0..text.len() {
            assert_eq!(parse(&text[..end]), None, "{end} bytes are not enough");
        }
    }

    #[test]
    fn chunks_are_joined() {
        let text =
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nwiki\r\nA\r\n0123456789\r\n0\r\n\r\n";
        assert_eq!(parse(&format!("{text}next")), Some((text.len(), 200, "wiki0123456789".to_owned())));
        for end in 0..text.len() {
            assert_eq!(parse(&text[..end]), None, "{end} bytes are not enough");
        }
    }

    #[test]
    fn what_is_not_http_is_an_error() {
        for text in
            ["SSH-2.0\r\n\r\n", "HTTP/1.1 abc OK\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n"]
        {
            assert!(HttpResponse::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
