//! A client that keeps its connection, and says so when there is no answer.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::traces;

/// The longest that anything in these tests takes.
pub const LIMIT: Duration = Duration::from_secs(30);

/// One connection to a server.
pub struct Client {
    stream: BufReader<TcpStream>,
    address: String,
    admin: String,
}

/// What a server said.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub retry_after: Option<u64>,
    pub body: Value,
}

impl Client {
    /// Connects to `address` with the token that the server wrote into `data`.
    pub fn connect(address: &str, data: &Path) -> Self {
        let admin = std::fs::read_to_string(data.join("admin.token")).unwrap().trim_end().to_owned();
        Self::with_token(address, &admin).unwrap()
    }

    /// Connects with this token.
    pub fn with_token(address: &str, admin: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LIMIT))?;
        Ok(Self { stream: BufReader::new(stream), address: address.to_owned(), admin: admin.to_owned() })
    }

    /// Another connection to the same server.
    pub fn another(&self) -> Self {
        Self::with_token(&self.address, &self.admin).unwrap()
    }

    /// One request. An error: the connection ended before the answer, so nobody knows what happened.
    pub fn ask(&mut self, line: &str, key: Option<&str>, body: &str) -> io::Result<Answer> {
        self.send(line, key, body)?;
        self.answer()
    }

    /// A request whose answer is read later, with [`Client::answer`].
    pub fn send(&mut self, line: &str, key: Option<&str>, body: &str) -> io::Result<()> {
        let key = key.map(|key| format!("Idempotency-Key: {key}\r\n")).unwrap_or_default();
        let request = format!(
            "{line} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             {key}Content-Length: {}\r\n\r\n{body}",
            self.address,
            self.admin,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes())
    }

    /// Asks for `resource`.
    pub fn acquire(&mut self, resource: &str, ttl_ms: u64, key: Option<&str>) -> io::Result<Answer> {
        let wish = json!({"resource": resource, "holder": "tester", "ttlMs": ttl_ms});
        self.ask("POST /v1/leases", key, &wish.to_string())
    }

    /// Renews, for as long as it was granted.
    pub fn renew(&mut self, lease: &Held) -> io::Result<Answer> {
        let line = format!("POST /v1/leases/{}/renew", lease.id);
        self.ask(&line, None, &json!({"token": lease.token}).to_string())
    }

    /// Releases.
    pub fn release(&mut self, lease: &Held) -> io::Result<Answer> {
        let line = format!("POST /v1/leases/{}/release", lease.id);
        self.ask(&line, None, &json!({"token": lease.token}).to_string())
    }

    /// Looks at a lease.
    pub fn show(&mut self, id: &str) -> io::Result<Answer> {
        self.ask(&format!("GET /v1/leases/{id}"), None, "")
    }

    /// The answer to what was sent.
    pub fn answer(&mut self) -> io::Result<Answer> {
        let status = self.line()?.split(' ').nth(1).and_then(|number| number.parse().ok());
        let (mut length, mut retry_after) = (0, None);
        loop {
            let line = self.line()?.to_ascii_lowercase();
            match line.split_once(": ") {
                Some(("content-length", value)) => length = value.parse().unwrap(),
                Some(("retry-after", value)) => retry_after = Some(value.parse().unwrap()),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        let status: u16 = status.expect("a status line");
        traces::answer(&format!("HTTP/1.1 {status}"), &String::from_utf8_lossy(&body));
        let body = serde_json::from_slice(&body)?;
        Ok(Answer { status, retry_after, body })
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let whole = line.strip_suffix("\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(whole.to_owned())
    }
}

impl Answer {
    /// What was granted; panics if nothing was.
    pub fn granted(&self) -> Held {
        assert_eq!(self.status, 201, "{self:?}");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        Held {
            id: text(&self.body["lease"]["id"]),
            token: text(&self.body["token"]),
            fence: self.body["lease"]["fence"].as_u64().unwrap(),
            ends: self.ends(),
        }
    }

    /// When the lease in it ends, in milliseconds of the time for people.
    pub fn ends(&self) -> i64 {
        milliseconds(self.body["lease"]["expiresAt"].as_str().unwrap())
    }

    /// `ACTIVE`, `EXPIRED` or `RELEASED`.
    pub fn state(&self) -> &str {
        self.body["lease"]["state"].as_str().unwrap_or("nothing")
    }

    /// How long the lease in it lasts.
    pub fn remaining(&self) -> i64 {
        self.body["lease"]["remainingMs"].as_i64().unwrap()
    }

    /// The status, and the code of a problem.
    pub fn code(&self) -> (u16, &str) {
        (self.status, self.body["code"].as_str().unwrap_or(""))
    }
}

/// A lease that was acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    pub id: String,
    pub token: String,
    pub fence: u64,
    pub ends: i64,
}

/// Unix milliseconds of a time such as `2026-11-16T01:46:00.123Z`.
pub fn milliseconds(time: &str) -> i64 {
    let numbers: Vec<i64> =
        time.split(['-', 'T', ':', '.', 'Z']).map_while(|number| number.parse().ok()).collect();
    let [year, month, day, hour, minute, second, millisecond] = numbers[..] else { panic!("{time:?}") };
    // Years that begin in March have their leap day at the end.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 719_469;
    (((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000 + millisecond
}

#[test]
fn times_are_read() {
    assert_eq!(milliseconds("1970-01-01T00:00:00.000Z"), 0);
    assert_eq!(milliseconds("2024-02-29T12:00:00.250Z"), 1_709_208_000_250);
    assert_eq!(milliseconds("2000-03-01T00:00:00.000Z"), 951_868_800_000);
}

/// What the clock of this process says.
#[expect(clippy::disallowed_methods, reason = "how long an answer takes is what is tested")]
pub fn now() -> Instant {
    Instant::now()
}

/// Waits.
pub fn pause(duration: Duration) {
    let end = now() + duration;
    while now() < end {
        std::thread::park_timeout(end - now());
    }
}

/// Waits until something is so.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = now() + LIMIT;
    while !is_so() {
        assert!(now() < end, "{what}: not within {LIMIT:?}");
        pause(Duration::from_millis(20));
    }
}
