//! Numbers as text: read exactly or not at all.
//!
//! Knows nothing of columns; the caller names the column and its type.

/// How many bytes at the front of `bytes` are a JSON number; `None` when none are.
pub fn json_number(bytes: &[u8]) -> Option<usize> {
    let digits = |mut at: usize| {
        let start = at;
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        (at > start).then_some(at)
    };
    let start = usize::from(bytes.first() == Some(&b'-'));
    let mut end = digits(start)?;
    if bytes[start] == b'0' && end > start + 1 {
        return None;
    }
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1)?;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let signed = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        end = digits(end + 1 + signed)?;
    }
    Some(end)
}

/// Why a text is no number of the kind wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoNumber {
    NotANumber,
    OutOfRange,
    /// It has digits behind the point that the type has no place for.
    Fraction,
}

/// A decimal number: `digits` × 10^`exponent`.
struct Exact {
    negative: bool,
    /// Without leading or trailing zeros; at most 38 of them.
    digits: i128,
    exponent: i64,
}

impl Exact {
    fn parse(text: &[u8]) -> Result<Self, NoNumber> {
        let (negative, rest) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let mark = rest.iter().position(|b| matches!(b, b'e' | b'E')).unwrap_or(rest.len());
        let mut exponent = match rest.get(mark + 1..) {
            None => 0,
            Some(power) => parse_exponent(power)?,
        };
        let (mut digits, mut zeros, mut any, mut behind_point) = (0i128, 0u32, false, false);
        for byte in &rest[..mark] {
            match byte {
                b'0'..=b'9' => {
                    any = true;
                    exponent -= i64::from(behind_point);
                    if *byte == b'0' {
                        zeros += u32::from(digits != 0);
                        continue;
                    }
                    digits = push_digit(digits, zeros, byte - b'0').ok_or(NoNumber::OutOfRange)?;
                    zeros = 0;
                }
                b'.' if !behind_point => behind_point = true,
                _ => return Err(NoNumber::NotANumber),
            }
        }
        let exponent = if digits == 0 { 0 } else { exponent + i64::from(zeros) };
        if any { Ok(Exact { negative, digits, exponent }) } else { Err(NoNumber::NotANumber) }
    }

    /// The number × 10^`scale`, which must be whole.
    fn scaled(&self, scale: i64) -> Result<i128, NoNumber> {
        let power = self.exponent + scale;
        if power < 0 {
            return Err(NoNumber::Fraction);
        }
        if self.digits == 0 {
            return Ok(0);
        }
        let factor = u32::try_from(power).ok().and_then(|power| 10i128.checked_pow(power));
        let value = factor.and_then(|factor| self.digits.checked_mul(factor)).ok_or(NoNumber::OutOfRange)?;
        Ok(if self.negative { -value } else { value })
    }
}

fn push_digit(digits: i128, zeros: u32, digit: u8) -> Option<i128> {
    let shifted = digits.checked_mul(10i128.checked_pow(zeros + 1)?)?;
    shifted.checked_add(i128::from(digit)).filter(|value| *value < 10i128.pow(38))
}

fn parse_exponent(text: &[u8]) -> Result<i64, NoNumber> {
    let digits = match text {
        [b'+' | b'-', digits @ ..] => digits,
        digits => digits,
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(NoNumber::NotANumber);
    }
    // Beyond a million everything but zero is out of every type's range.
    let size = digits.iter().fold(0i64, |size, digit| (size * 10 + i64::from(digit - b'0')).min(1_000_000));
    Ok(if text[0] == b'-' { -size } else { size })
}

/// A whole number between `low` and `high`.
pub fn integer(text: &[u8], low: i128, high: i128) -> Result<i128, NoNumber> {
    let value = Exact::parse(text)?.scaled(0)?;
    if (low..=high).contains(&value) { Ok(value) } else { Err(NoNumber::OutOfRange) }
}

/// A number × 10^`scale`, of at most `precision` digits.
pub fn decimal(text: &[u8], precision: u8, scale: i8) -> Result<i128, NoNumber> {
    let value = Exact::parse(text)?.scaled(i64::from(scale))?;
    if value.unsigned_abs() < 10u128.pow(u32::from(precision.min(38))) { Ok(value) } else { Err(NoNumber::OutOfRange) }
}

/// A floating point number, the nearest to the text; `single` for the 32-bit ones. Infinity only where it is
/// spelled out.
pub fn float(text: &str, single: bool) -> Result<f64, NoNumber> {
    let value = match single {
        true => text.parse::<f32>().map(f64::from),
        false => text.parse::<f64>(),
    };
    match value {
        Ok(value) if value.is_infinite() && text.bytes().any(|b| b.is_ascii_digit()) => Err(NoNumber::OutOfRange),
        Ok(value) => Ok(value),
        Err(_) => Err(NoNumber::NotANumber),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const I64: (i128, i128) = (i64::MIN as i128, i64::MAX as i128);

    fn int(text: &str) -> Result<i128, NoNumber> {
        integer(text.as_bytes(), I64.0, I64.1)
    }

    #[test]
    fn json_numbers_end_where_their_grammar_ends() {
        for (text, length) in [("0", 1), ("-12,", 3), ("1.50}", 4), ("1e+3 ", 4), ("10", 2), ("0.5", 3)] {
            assert_eq!(json_number(text.as_bytes()), Some(length), "{text}");
        }
        for text in ["", "-", "01", "-01", "1.", ".5", "1e", "+1", "NaN"] {
            assert_eq!(json_number(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn integers_are_exact_or_refused() {
        assert_eq!(int("9007199254740993"), Ok(9_007_199_254_740_993));
        assert_eq!(int("-9223372036854775808"), Ok(i64::MIN as i128));
        assert_eq!(int("9223372036854775808"), Err(NoNumber::OutOfRange));
        assert_eq!(int("1e3"), Ok(1000));
        assert_eq!(int("1.0"), Ok(1));
        assert_eq!(int("1200e-2"), Ok(12));
        assert_eq!(int("0e999999999999"), Ok(0));
        assert_eq!(int("1.5"), Err(NoNumber::Fraction));
        assert_eq!(int("1e999999999999"), Err(NoNumber::OutOfRange));
        assert_eq!(int("1e-999999999999"), Err(NoNumber::Fraction));
        for text in ["", "-", "abc", "1x", "1..2", "1e", "."] {
            assert_eq!(int(text), Err(NoNumber::NotANumber), "{text}");
        }
    }

    #[test]
    fn decimals_never_round() {
        assert_eq!(decimal(b"12.34", 10, 2), Ok(1234));
        assert_eq!(decimal(b"-0.5", 10, 2), Ok(-50));
        assert_eq!(decimal(b"12.3400", 10, 2), Ok(1234));
        assert_eq!(decimal(b"12.345", 10, 2), Err(NoNumber::Fraction));
        assert_eq!(decimal(b"99999999.99", 10, 2), Ok(9_999_999_999));
        assert_eq!(decimal(b"100000000", 10, 2), Err(NoNumber::OutOfRange));
        assert_eq!(decimal(&[b'9'; 38], 38, 0), Ok(10i128.pow(38) - 1));
        assert_eq!(decimal(&[b'9'; 400], 38, 0), Err(NoNumber::OutOfRange));
        assert_eq!(decimal(b"1200", 4, -2), Ok(12));
    }

    #[test]
    fn floats_overflow_loudly() {
        assert_eq!(float("1e308", false), Ok(1e308));
        assert_eq!(float("1e309", false), Err(NoNumber::OutOfRange));
        assert_eq!(float("1e39", true), Err(NoNumber::OutOfRange));
        assert_eq!(float("Infinity", false), Ok(f64::INFINITY));
        assert!(float("NaN", false).is_ok_and(f64::is_nan));
        assert_eq!(float("one", false), Err(NoNumber::NotANumber));
    }
}
