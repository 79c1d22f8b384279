//! Lengths of time as people write them: `30s`, `5m`, `1h30m`, `500ms`.

use std::time::Duration;

/// Each unit, and how many milliseconds it has.
const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Reads a length of time: whole numbers, each with a unit, the largest first. A number alone is refused, because
/// nobody knows whether seconds or milliseconds are meant.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong =
        || format!("{text:?} is no length of time; write it with units, such as 30s, 5m, 1h30m or 500ms");
    let mut rest = text;
    let mut total: u64 = 0;
    let mut larger = u64::MAX;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, behind) = rest.split_at(digits);
        let letters = behind.find(|letter: char| letter.is_ascii_digit()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(letters);
        let length = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?.1;
        if length >= larger {
            return Err(wrong());
        }
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let part = number.checked_mul(length).ok_or_else(wrong)?;
        total = total.checked_add(part).ok_or_else(wrong)?;
        (rest, larger) = (behind, length);
    }
    if larger == u64::MAX { Err(wrong()) } else { Ok(Duration::from_millis(total)) }
}

/// The same in milliseconds, as they go over the wire.
pub fn parse_milliseconds(text: &str) -> Result<u64, String> {
    parse(text).map(milliseconds)
}

/// A duration in whole milliseconds.
pub fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A length of time in few letters: the two largest units that it has, `1m 12s`.
pub fn format_short(milliseconds: u64) -> String {
    if milliseconds < 1_000 {
        return format!("{milliseconds}ms");
    }
    let mut rest = milliseconds;
    let mut parts = Vec::new();
    for (unit, length) in UNITS.iter().rev().filter(|(_, length)| *length >= 1_000) {
        let count = rest / length;
        rest %= length;
        if count > 0 {
            parts.push(format!("{count}{unit}"));
        }
    }
    parts.truncate(2);
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_with_units_are_parsed() {
        for (text, milliseconds) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("2d", 172_800_000),
            ("1m1ms", 60_001),
            ("0s", 0),
        ] {
            assert_eq!(parse_milliseconds(text), Ok(milliseconds), "{text}");
        }
    }

    #[test]
    fn ambiguous_durations_are_rejected_with_an_example() {
        for text in
            ["", "30", "s", "1.5s", "-1s", "30 s", "5s1m", "1s1s", "1S", "1h30", "99999999999999999999s"]
        {
            let error = parse(text).unwrap_err();
            assert!(error.contains("30s"), "{error}");
        }
        assert!(parse("18446744073709551615d").is_err(), "too long to be counted");
    }

    #[test]
    fn durations_are_formatted_with_their_two_largest_units() {
        for (milliseconds, text) in [
            (0, "0ms"),
            (999, "999ms"),
            (1_000, "1s"),
            (72_400, "1m 12s"),
            (3_600_000, "1h"),
            (90_061_000, "1d 1h"),
        ] {
            assert_eq!(format_short(milliseconds), text);
        }
    }
}
