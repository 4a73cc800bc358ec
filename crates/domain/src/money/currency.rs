//! Currencies of ISO 4217 with their exponents.

use std::fmt;
use std::str::FromStr;

/// Codes with no minor unit.
const EXPONENT_0: &str = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF";
/// Codes with a minor unit of a thousandth.
const EXPONENT_3: &str = "BHD IQD JOD KWD LYD OMR TND";
/// Codes with a minor unit of a hundredth.
const EXPONENT_2: &str = "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CNY COP \
     CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS \
     KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN \
     PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS \
     UAH USD UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG";

/// A currency of ISO 4217 with 0, 2 or 3 decimal places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency {
    code: &'static str,
    exponent: u32,
}

impl Currency {
    /// Its code of three capital letters.
    pub const fn code(self) -> &'static str {
        self.code
    }

    /// Decimal places of its minor unit: 0, 2 or 3.
    pub const fn exponent(self) -> u32 {
        self.exponent
    }
}

impl FromStr for Currency {
    type Err = CurrencyError;

    fn from_str(text: &str) -> Result<Self, CurrencyError> {
        [(EXPONENT_2, 2), (EXPONENT_0, 0), (EXPONENT_3, 3)]
            .into_iter()
            .find_map(|(codes, exponent)| {
                let code = codes.split_ascii_whitespace().find(|code| *code == text)?;
                Some(Self { code, exponent })
            })
            .ok_or_else(|| CurrencyError(text.to_owned()))
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code)
    }
}

/// A text that names no currency.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no currency: a code of ISO 4217 in capitals is wanted, such as \"EUR\"")]
pub struct CurrencyError(String);

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn exponents_are_those_of_the_standard() {
        for (code, exponent) in
            [("EUR", 2), ("USD", 2), ("JPY", 0), ("KRW", 0), ("KWD", 3), ("TND", 3), ("CHF", 2)]
        {
            assert_eq!(code.parse::<Currency>().unwrap().exponent(), exponent, "{code}");
        }
        for text in ["", "eur", "EURO", "XXX", "EU R", "BIF CLP"] {
            assert!(text.parse::<Currency>().is_err(), "{text}");
        }
    }

    #[test]
    fn every_code_stands_once_and_has_three_capitals() {
        let all: Vec<&str> =
            [EXPONENT_0, EXPONENT_2, EXPONENT_3].into_iter().flat_map(str::split_ascii_whitespace).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        assert!(all.iter().all(|c| c.len() == 3 && c.bytes().all(|b| b.is_ascii_uppercase())));
    }
}
