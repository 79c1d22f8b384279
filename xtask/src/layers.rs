//! Who may depend on whom.

use std::fmt::Write;

use cargo_metadata::{DependencyKind, Package};

use crate::architecture::Architecture;
use crate::problem::Problem;
use crate::purity;
use crate::workspace::Workspace;

/// Checks who depends on whom against the table in xtask/src/layers.rs
///
/// Compares that table with every Cargo.toml and with the table in ARCHITECTURE.md, compares the
/// external dependencies with the list in ARCHITECTURE.md, and sees that the pure crates are pure.
#[derive(clap::Args)]
pub struct Arguments {
    /// Write the table into ARCHITECTURE.md instead of comparing it
    #[arg(long)]
    write: bool,
}

/// One crate and what it may depend on, to run, to build or to test.
struct Layer {
    name: &'static str,
    /// The crates of this workspace.
    uses: &'static [&'static str],
    /// The crates from elsewhere that are part of the program; `None` is any with a line in ARCHITECTURE.md.
    external: Option<&'static [&'static str]>,
    /// What the boundary is for, as ARCHITECTURE.md shows it.
    reason: &'static str,
}

/// From the bottom to the top.
const LAYERS: &[Layer] = &[
    Layer {
        name: "tenure-core",
        uses: &[],
        // Named one by one: whatever brought a clock, a disk or a random source along would end replay.
        external: Some(&["blake3", "prost", "siphasher", "thiserror"]),
        reason: "pure: no clock, disk, network, randomness or async, so everything can be replayed",
    },
    Layer {
        name: "tenure-ledger",
        uses: &["tenure-core"],
        external: None,
        reason: "what is durable: files, the hash chain, signatures; decides nothing",
    },
    Layer {
        name: "tenure-registrar",
        uses: &["tenure-core", "tenure-ledger"],
        external: None,
        reason: "the single writer; knows no client",
    },
    Layer {
        name: "tenure-history",
        uses: &["tenure-core", "tenure-ledger"],
        external: None,
        reason: "checks what clients were told; reads a ledger, and shares no rule with what it checks",
    },
    Layer {
        name: "tenure-api",
        uses: &[],
        external: Some(&["serde", "serde_json", "utoipa"]),
        reason: "what goes over the wire; server and clients share it, so it knows neither",
    },
    Layer {
        name: "tenure-control",
        uses: &["tenure-core"],
        // Named one by one, as in the core: time comes in as a tick.
        external: Some(&["base64", "blake3", "hex", "serde", "serde_json", "sha2", "subtle"]),
        reason: "who may move a device, and a device to move; no socket, file or clock",
    },
    Layer {
        name: "tenure-seccomp",
        uses: &[],
        external: None,
        reason: "calls of processes that wait for an answer; the only crate that may be unsafe, in one module",
    },
    Layer {
        name: "tenure-gate",
        uses: &["tenure-api", "tenure-seccomp"],
        external: None,
        reason: "what is on this machine: files, processes, git, agents and their hooks; knows no lease",
    },
    Layer {
        name: "tenure-server",
        uses: &[
            "tenure-api",
            "tenure-control",
            "tenure-core",
            "tenure-gate",
            "tenure-ledger",
            "tenure-registrar",
        ],
        external: None,
        reason: "authenticates, parses once, asks the registrar; decides nothing about a lease",
    },
    Layer {
        name: "tenure-client",
        uses: &["tenure-api", "tenure-core", "tenure-server"],
        external: None,
        reason: "keeps a lease alive; knows no registrar, only what it says",
    },
    Layer {
        name: "tenure-sim",
        uses: &["tenure-client", "tenure-core", "tenure-ledger", "tenure-registrar"],
        external: None,
        reason: "drives the same code as the program; nothing that ships depends on it",
    },
    Layer {
        name: "tenure",
        uses: &[
            "tenure-api",
            "tenure-client",
            "tenure-control",
            "tenure-core",
            "tenure-gate",
            "tenure-history",
            "tenure-ledger",
            "tenure-registrar",
            "tenure-seccomp",
            "tenure-server",
        ],
        external: None,
        reason: "the program: the only crate that ships; its tests alone use `tenure-history`",
    },
    Layer {
        name: "tenure-testkit",
        uses: &["tenure-api", "tenure-client", "tenure-server"],
        external: None,
        reason: "what tests start and speak to; the tests of any crate may use it, and nothing else",
    },
    Layer { name: "xtask", uses: &[], external: None, reason: "runs cargo; builds without the rest" },
];

/// Crates that only tests may use, whichever crate they are of.
const FOR_TESTS: &[&str] = &["tenure-testkit"];

/// Checks everything, or writes the table.
pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<(), Problem> {
    if arguments.write {
        return Architecture::read(workspace)?.write_layers(&table());
    }
    check(workspace)
}

/// Checks everything that the table promises.
pub fn check(workspace: &Workspace) -> Result<(), Problem> {
    let mut wrong = violations(&workspace.packages);
    wrong.extend(purity::violations(&workspace.root)?);
    if !wrong.is_empty() {
        return Err(Problem::new(
            format!("a layer does what it must not:\n  {}", wrong.join("\n  ")),
            "ARCHITECTURE.md would promise something that is no longer true",
            "take the dependency or the call out; if the promise shall change, change xtask/src/layers.rs or \
             xtask/src/purity.rs, and record the decision in docs/adr",
        ));
    }
    let architecture = Architecture::read(workspace)?;
    architecture.check_layers(&table())?;
    architecture.check_dependencies(&external_dependencies(&workspace.packages))
}

/// What the Cargo.toml files say and the table does not allow.
fn violations(packages: &[Package]) -> Vec<String> {
    let mut wrong = Vec::new();
    for package in packages {
        let Some(layer) = LAYERS.iter().find(|layer| layer.name == package.name.as_str()) else {
            wrong.push(format!("{} has no line in the table", package.name));
            continue;
        };
        for dependency in &package.dependencies {
            let name = dependency.name.as_str();
            let is_allowed = if FOR_TESTS.contains(&name) {
                dependency.kind == DependencyKind::Development
            } else if is_ours(packages, name) {
                layer.uses.contains(&name)
            } else {
                dependency.kind != DependencyKind::Normal
                    || layer.external.is_none_or(|allowed| allowed.contains(&name))
            };
            if !is_allowed {
                wrong.push(format!("{} depends on {name}; {}", layer.name, layer.reason));
            }
        }
    }
    for layer in LAYERS {
        if !is_ours(packages, layer.name) {
            wrong.push(format!("{} is in the table, but not in the workspace", layer.name));
        }
    }
    wrong
}

fn is_ours(packages: &[Package], name: &str) -> bool {
    packages.iter().any(|package| package.name.as_str() == name)
}

/// The crates from elsewhere that some Cargo.toml names, each once.
fn external_dependencies(packages: &[Package]) -> Vec<&str> {
    let all =
        packages.iter().flat_map(|package| &package.dependencies).map(|dependency| dependency.name.as_str());
    let mut names: Vec<_> = all.filter(|name| !is_ours(packages, name)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The table as ARCHITECTURE.md shows it.
fn table() -> String {
    let mut table = String::from("| crate | may use | why |\n|---|---|---|\n");
    for layer in LAYERS {
        let uses: Vec<_> = layer.uses.iter().map(|name| format!("`{name}`")).collect();
        let uses = if uses.is_empty() { "–".to_owned() } else { uses.join(", ") };
        writeln!(table, "| `{}` | {uses} | {} |", layer.name, layer.reason).expect("writing into a string");
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A package as `cargo metadata` prints it.
    fn package(name: &str, dependencies: &[(&str, &str)]) -> Package {
        let dependency = |(name, kind): &(&str, &str)| {
            json!({ "name": name, "kind": kind, "req": "*", "optional": false, "uses_default_features": true,
                    "features": [], "target": null, "rename": null, "registry": null, "source": null })
        };
        let value = json!({
            "name": name, "version": "0.1.0", "id": name, "manifest_path": "/Cargo.toml", "targets": [], "features": {},
            "dependencies": dependencies.iter().map(dependency).collect::<Vec<_>>(),
        });
        serde_json::from_value(value).expect("a package")
    }

    /// The workspace as the table describes it, with what `more` adds.
    fn packages(more: &[(&str, &str, &'static str)]) -> Vec<Package> {
        let dependencies = |name: &str| {
            let added = more.iter().filter(|(from, ..)| *from == name);
            added.map(|(_, to, kind)| (*to, *kind)).collect::<Vec<_>>()
        };
        LAYERS.iter().map(|layer| package(layer.name, &dependencies(layer.name))).collect()
    }

    #[test]
    fn dependencies_in_the_table_are_allowed() {
        let packages = packages(&[
            ("tenure-core", "prost", "normal"),
            ("tenure-core", "protox", "build"),
            ("tenure-core", "proptest", "dev"),
            ("tenure-registrar", "tenure-core", "normal"),
            ("tenure-registrar", "rustix", "normal"),
            ("tenure-server", "tenure-testkit", "dev"),
        ]);
        assert_eq!(violations(&packages), [""; 0]);
        assert_eq!(external_dependencies(&packages), ["proptest", "prost", "protox", "rustix"]);
    }

    #[test]
    fn a_dependency_that_is_not_in_the_table_is_named() {
        for (from, to, kind) in [
            ("tenure-core", "tokio", "normal"),
            ("tenure-core", "tenure-registrar", "normal"),
            ("tenure-core", "tenure-sim", "dev"),
            ("tenure-client", "tenure-registrar", "normal"),
            ("tenure", "tenure-sim", "build"),
            ("xtask", "tenure-sim", "normal"),
            ("tenure", "tenure-testkit", "normal"),
            ("tenure-server", "tenure-testkit", "build"),
        ] {
            let wrong = violations(&packages(&[(from, to, kind)]));
            assert_eq!(wrong.len(), 1, "{wrong:?}");
            assert!(wrong[0].starts_with(&format!("{from} depends on {to}; ")), "{wrong:?}");
        }
    }

    #[test]
    fn a_crate_without_a_row_and_a_row_without_a_crate_are_named() {
        let mut packages = packages(&[]);
        packages[0] = package("tenure-other", &[]);
        assert_eq!(
            violations(&packages),
            [
                "tenure-other has no line in the table",
                "tenure-core is in the table, but not in the workspace"
            ]
        );
    }

    #[test]
    fn each_layer_uses_only_layers_below_it() {
        for (index, layer) in LAYERS.iter().enumerate() {
            for used in layer.uses {
                let is_below = LAYERS[..index].iter().any(|below| below.name == *used);
                assert!(is_below, "{} uses {used}", layer.name);
            }
        }
    }
}
