//! `tenure who`.

use std::path::Path;

use clap::Args;
use tenure_api::{Lease, LeasePage};
use tenure_client::LeaseFilter;

use super::list_all;
use crate::client::{with_client, with_local_client};
use crate::command::file::files::{absolute_path, view};
use crate::duration::format_short;
use crate::exit;
use crate::failure::Failure;
use crate::output::{Format, write_json, write_text};

/// Says who holds a resource, or which agent is editing a file.
///
/// `deploy:prod` is a resource: a word, a colon, a name. Anything else is a file, and is asked of the server of this machine;
/// a file with such a name is meant by `./deploy:prod`.
///
/// Exit code 0: somebody does. 1: nobody.
///
/// Example: tenure who deploy:prod || echo free
/// Example: tenure who src/main.rs
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct Who {
    /// What: `domain:name`, or the path of a file
    #[arg(value_name = "RESOURCE|PATH")]
    what: String,
    #[command(flatten)]
    format: Format,
}

impl Who {
    /// Asks and answers.
    pub fn run(self) -> Result<(), Failure> {
        let is_free = if is_resource(&self.what) { self.resource()? } else { self.file()? };
        if is_free { Err(Failure::silent(exit::NO)) } else { Ok(()) }
    }

    /// Whether nobody has it.
    fn resource(self) -> Result<bool, Failure> {
        let filter = LeaseFilter { resource: Some(self.what.clone()), ..LeaseFilter::default() };
        let leases = with_client(async |client| list_all(&client, filter).await)?;
        let is_free = leases.is_empty();
        if self.format.json {
            write_json(&LeasePage { leases, next: None })?;
        } else if is_free {
            write_text(&format!("Nobody holds {}.\n", self.what))?;
        } else {
            write_text(&leases.iter().map(line).collect::<String>())?;
        }
        Ok(is_free)
    }

    /// The same for a file.
    fn file(self) -> Result<bool, Failure> {
        let path = absolute_path(Path::new(&self.what))?;
        let found = with_local_client(async |client| client.file(&path).await)?;
        self.format.print(&found, view::describe_file)?;
        Ok(found.file.is_none())
    }
}

/// Whether this is `domain:name`. What is before the colon of a path has a slash or a dot in it.
fn is_resource(what: &str) -> bool {
    let domain = what.split_once(':').map(|(domain, _)| domain);
    let is_domain = |domain: &str| {
        domain.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && domain.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    domain.is_some_and(is_domain)
}

fn line(lease: &Lease) -> String {
    let Lease { holder, mode, fence, id, .. } = lease;
    let waiting = match &lease.recall {
        Some(waiters) if waiters.waiting == 1 => "; 1 waits".to_owned(),
        Some(waiters) => format!("; {} wait", waiters.waiting),
        None => String::new(),
    };
    format!(
        "{holder} ({mode}, fence {fence}, lease {id}), {} left{waiting}\n",
        format_short(lease.remaining_ms)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argument_with_a_domain_is_a_resource_and_any_other_is_a_file() {
        for resource in ["deploy:prod", "FILE:0123/src/a.rs", "db:a/b", "x:", "light-1:all"] {
            assert!(is_resource(resource), "{resource}");
        }
        for file in
            ["src/main.rs", "./deploy:prod", "a b:c", "main.rs:7", "/a:b", "Makefile", "", ":x", "7:x"]
        {
            assert!(!is_resource(file), "{file}");
        }
    }
}
