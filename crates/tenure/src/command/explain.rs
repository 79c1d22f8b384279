//! `tenure explain`.

use clap::Args;
use tenure_api::Explanation;

use super::lease_view;
use crate::failure::Failure;
use crate::output::Format;
use crate::server::ask;

/// Says why a resource is as it is: who holds it, who waits, what would free it, who was refused last and why.
///
/// Example: tenure explain deploy:prod
#[derive(Debug, Args)]
pub struct Explain {
    /// What, as `domain:name`
    resource: String,
    #[command(flatten)]
    format: Format,
}

impl Explain {
    /// Asks and tells.
    pub fn run(self) -> Result<(), Failure> {
        let explanation = ask(async |client| Ok(client.explain(&self.resource).await?))?;
        self.format.print(&explanation, in_words)
    }
}

fn in_words(explanation: &Explanation) -> String {
    let mut text: String = explanation.words.iter().map(|sentence| format!("{sentence}\n")).collect();
    if !explanation.held.is_empty() {
        text.push_str(&format!("\n{}", lease_view::table(&explanation.held)));
    }
    if !explanation.waiting.is_empty() {
        text.push_str(&format!("\n{}", lease_view::queue(&explanation.waiting)));
    }
    text
}
