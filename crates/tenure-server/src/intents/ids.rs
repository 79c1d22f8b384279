//! Names that nobody used before.

use tenure_api::Code;
use tenure_core::kernel::Holder;

use crate::http::answer::Failure;

/// A name for a session: nobody guesses it, and no other has it.
pub(super) fn session() -> Result<Holder, Failure> {
    Ok(Holder::parse(&format!("ses_{}", random()?))?)
}

/// By which a caller that says nothing finds its intent in logs.
pub(super) fn correlation() -> Result<String, Failure> {
    Ok(format!("cor_{}", random()?))
}

fn random() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    let failed = |_| Failure::new(Code::Internal, "the system gives no random bytes; nothing happened");
    getrandom::fill(&mut bytes).map_err(failed)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}
