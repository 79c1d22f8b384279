//! What must never happen, and how it is told.

use std::fmt;

use crate::operation::Operation;

macro_rules! laws {
    ($($(#[$documentation:meta])* $law:ident = $text:literal;)*) => {
        /// What a history or a ledger must never show.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Law {
            $($(#[$documentation])* $law,)*
        }

        impl Law {
            /// Every law there is.
            pub const ALL: &[Law] = &[$(Law::$law,)*];

            /// The law in one sentence.
            pub const fn sentence(self) -> &'static str {
                match self { $(Law::$law => $text,)* }
            }
        }
    };
}

laws! {
    /// Two leases that do not go together.
    MutualExclusion = "no two leases that do not go together live at the same time";
    /// A number was given out twice.
    UniqueFences = "no fence is given out twice";
    /// A later grant has a smaller number.
    MonotonicFences = "a later grant has a larger fence";
    /// Told to be over, or gone, while it had time left.
    NoEarlyEnd = "nothing but its holder or the registrar's recorded word ends a lease before its time";
    /// Something was done with a lease that was over.
    NoUseAfterEnd = "what is over is not renewed, given back, handed on or seen alive";
    /// A renewal took time away.
    NoShortening = "a renewal never shortens, and an answer promises what was asked for";
    /// Refused, and nobody was in the way.
    JustifiedDenials = "a refusal names somebody who was in the way";
    /// A reader was not shown what was acknowledged before.
    NoStaleReads = "a reader sees what was acknowledged before it asked";
    /// A reader was shown what had not happened, or not like this.
    AccurateReads = "a reader sees only what happened";
    /// The same request led to two leases.
    Idempotency = "the same request under the same key gives the same lease";
    /// Acknowledged, and not in the ledger.
    Durability = "what was acknowledged stands in the ledger";
    /// The ledger says it differently than the answer did.
    AnswersMatchLedger = "the ledger says what the answer said";
    /// In the ledger, but nobody asked.
    NoUnrequestedEvents = "nothing happens that nobody asked for";
    /// What happened first stands second.
    RealTimeOrder = "the ledger has the order in which things were asked and answered";
    /// Time ran backwards in the ledger.
    MonotonicTime = "ticks never go back";
    /// Somebody was let in before one who waited.
    FirstComeFirstServed = "nobody overtakes a waiter that is in conflict with it";
    /// Let in after it had stopped waiting.
    NoGrantAfterTimeout = "nobody is granted anything once its patience is over";
    /// Some of what was asked for together.
    AllOrNothing = "what is asked for together is granted together";
}

/// What was found, told so that a person understands it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which law is broken.
    pub law: Law,
    /// How.
    pub reason: String,
    /// The operations and entries involved, in order.
    pub evidence: Vec<String>,
}

impl Violation {
    pub(crate) fn new(law: Law, reason: impl Into<String>) -> Self {
        Self { law, reason: reason.into(), evidence: Vec::new() }
    }

    pub(crate) fn with_operation(mut self, operation: &Operation) -> Self {
        self.evidence.push(operation.to_string());
        self
    }

    pub(crate) fn with_line(mut self, line: impl fmt::Display) -> Self {
        self.evidence.push(line.to_string());
        self
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "broken: {}", self.law.sentence())?;
        writeln!(formatter, "  {}", self.reason)?;
        self.evidence.iter().try_for_each(|line| writeln!(formatter, "    {line}"))
    }
}

impl std::error::Error for Violation {}
