//! The pure kernel of Tenure: who may touch this, until when, and how can they prove it?
//!
//! Two layers share one set of [rules]:
//!
//! - [`kernel`] decides. It holds everything that is needed to answer a request, compactly, and says
//!   with [`kernel::decide`] which events a command leads to.
//! - [`lease`], [`ledger`] and [`reducer`] are the library of the work face: a reducer that turns the
//!   same events into leases that a program can ask about, for audit, for replay, and as the second
//!   opinion that tests compare the kernel with.
//!
//! Nothing here reads a clock, a disk or a random source, and nothing is async: time and randomness
//! come in as arguments, so whatever happens can be replayed and simulated.

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
