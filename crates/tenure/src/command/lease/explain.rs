//! Explains why a resource is not free, and which clients wait for each other.

use clap::Args;
use tenure_api::{ContentionEdge, Explanation};

use super::view;
use crate::client::with_client;
use crate::failure::Failure;
use crate::output::Format;

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
        let explanation = with_client(async |client| Ok(client.explain(&self.resource).await?))?;
        self.format.print(&explanation, in_words)
    }
}

fn in_words(explanation: &Explanation) -> String {
    let mut text: String = explanation.words.iter().map(|sentence| format!("{sentence}\n")).collect();
    if !explanation.held.is_empty() {
        text.push_str(&format!("\n{}", view::table(&explanation.held)));
    }
    if !explanation.waiting.is_empty() {
        text.push_str(&format!("\n{}", view::queue(&explanation.waiting)));
    }
    text
}

/// Shows who waits for whom, agents and others.
///
/// One line for each who is in the way of somebody. It never has a circle: who would close one is refused, or has to come
/// back later.
///
/// Example: tenure contention
#[derive(Debug, Args)]
pub struct Contention {
    #[command(flatten)]
    format: Format,
}

impl Contention {
    /// Reads the graph and prints it.
    pub fn run(self) -> Result<(), Failure> {
        let contention = with_client(async |client| Ok(client.contention().await?))?;
        self.format.print(&contention, |contention| {
            let mut text: String = contention.edges.iter().map(line).collect();
            if contention.edges.is_empty() {
                text.push_str("Nobody waits.\n");
            }
            if contention.truncated {
                text.push_str("There are more.\n");
            }
            text
        })
    }
}

fn line(edge: &ContentionEdge) -> String {
    let ContentionEdge { from, to, resource, predicate, .. } = edge;
    let why = if edge.because == "HOLDS" { "" } else { ", which waits in front" };
    let alternatives = if edge.one_of_several { ", or another that will do" } else { "" };
    let line = format!("{from} waits for {to}{why}: {predicate} {resource}{alternatives}");
    // What others called themselves must not steer a terminal.
    line.replace(char::is_control, " ") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contention_edge_is_one_line() {
        let mut edge = ContentionEdge {
            from: "a".into(),
            to: "b".into(),
            resource: "FILE:x".into(),
            predicate: "MUTATES".into(),
            because: "HOLDS".into(),
            wait_timeout_ms: 1,
            one_of_several: false,
        };
        assert_eq!(line(&edge), "a waits for b: MUTATES FILE:x\n");
        (edge.because, edge.one_of_several) = ("WAITS".into(), true);
        let expected = "a waits for b, which waits in front: MUTATES FILE:x, or another that will do\n";
        assert_eq!(line(&edge), expected);
    }
}
