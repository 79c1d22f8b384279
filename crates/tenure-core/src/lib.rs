//! The pure core of Tenure: values, rules, and the kernel that decides about leases.
//!
//! Two layers share one set of [rules]:
//!
//! - [`kernel`] decides: [`kernel::decide`] turns a command into events. Its state holds no more than a decision needs.
//! - [`lease`], [`ledger`] and [`reducer`] are the library of the work API: a reducer that turns the same events into leases
//!   that a program can query, for audit, for replay, and as the oracle that tests compare the kernel with.
//!
//! Nothing here reads a clock, a disk or a random source, and nothing is async: time and randomness are arguments, so that
//! everything can be replayed and simulated.

pub mod authority;
pub mod kernel;
pub mod lease;
pub mod ledger;
pub mod proto;
pub mod protobuf_writer;
pub mod reducer;
pub mod rules;
mod value;

/// The examples of the guide run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/library.md")]
mod library_guide {}

/// Declares an enum without fields, with a text for each value: `ALL` values in their order and `as_str`.
///
/// `enum Name: parse` adds a function of that name from a text to its value.
#[macro_export]
macro_rules! text_enum {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $name:ident $(: $parse:ident)? {
            $($(#[$documentation:meta])* $value:ident = $text:literal,)*
        }
    ) => {
        $(#[$attribute])*
        $visibility enum $name {
            $($(#[$documentation])* $value,)*
        }

        impl $name {
            /// Every value, in the order of the enum.
            $visibility const ALL: [$name; [$($name::$value),*].len()] = [$($name::$value),*];

            /// The value as it is written for people and programs.
            $visibility const fn as_str(self) -> &'static str {
                match self {
                    $($name::$value => $text,)*
                }
            }

            $(
                /// The value that is written like this.
                $visibility fn $parse(text: &str) -> Option<$name> {
                    $name::ALL.into_iter().find(|value| value.as_str() == text)
                }
            )?
        }
    };
}
