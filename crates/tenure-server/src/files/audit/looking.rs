//! What is known of what changed. It looks at the disk and at processes, so not on a thread that others wait for.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_core::kernel::{Holder, Resource, State, Tick};
use tenure_gate::calls::looks_temporary;
use tenure_gate::git;
use tenure_gate::paths::{WorkTree, name_in};
use tenure_gate::process::{Process, started, takes_in_orphans, writers_of};
use tenure_gate::watch::Kind;

use super::pending::{Noted, Pending, SeenWriter};
use super::verdict::{Facts, Suspect, Violation, Whose, judge};
use crate::app::App;
use crate::files::{identity, targets};

/// The most files of which is looked at once who has them open.
const MOST_LOOKED: usize = 1_000;

/// Begins a round: looks who has what changed since the last one open for writing. At once, because whoever it is may close it in
/// a moment.
pub(super) fn look_for_writers(app: &App, tree: &WorkTree, pending: &parking_lot::Mutex<Pending>) {
    let paths = pending.lock().begin_round(MOST_LOOKED);
    let mut files: HashMap<(u64, u64), Vec<PathBuf>> = HashMap::new();
    for path in paths {
        let about = fs::symlink_metadata(tree.root.join(&path)).ok().filter(fs::Metadata::is_file);
        if let Some(about) = about {
            files.entry((about.dev(), about.ino())).or_default().push(path);
        }
    }
    let mut seen: HashMap<u32, Arc<SeenWriter>> = HashMap::new();
    for writer in writers_of(&files.keys().copied().collect()) {
        let pid = writer.process.pid;
        let found = match seen.get(&pid) {
            Some(found) => found.clone(),
            None => {
                let line = identity::line_of(pid);
                let adopted = line.windows(2).find(|pair| takes_in_orphans(pair[1].pid));
                let adopted = adopted.map(|pair| pair[0].clone());
                // Who ended while it was looked at has lost its parents: nobody can say whose it was, and nobody is accused.
                if started(pid) != Some(writer.process.started) {
                    continue;
                }
                let session = identity::session_of(app, &line, None);
                let found = Arc::new(SeenWriter { pid, name: writer.name, line, adopted, session });
                seen.insert(pid, found.clone());
                found
            }
        };
        let mut pending = pending.lock();
        for path in files.get(&writer.file).into_iter().flatten() {
            pending.is_open(path, found.clone());
        }
    }
}

/// What of these changes is a violation, by the name in the ledger.
pub(super) fn violations(
    app: &App,
    tree: &WorkTree,
    settled: Vec<(PathBuf, Noted)>,
    now: Tick,
) -> Vec<(Resource, Violation)> {
    let mut found = Vec::new();
    for (path, noted) in settled {
        if is_exempt(tree, &path, &noted) {
            continue;
        }
        let Some((resource, owner)) = owner_of(app, tree, &path, noted.last, now) else { continue };
        let writers = noted.writers.iter().map(|writer| suspect(app, writer, owner.as_ref())).collect();
        let facts = Facts { kind: noted.last, has_owner: owner.is_some(), by_git: noted.by_git, writers };
        if let Some(violation) = judge(&facts) {
            found.push((path, resource, violation));
        }
    }
    if found.is_empty() {
        return Vec::new();
    }
    // Asked last, and once: git is a process of its own. Where it does not say, nothing is ignored.
    let paths: Vec<PathBuf> = found.iter().map(|(path, ..)| path.clone()).collect();
    let ignored: HashSet<PathBuf> =
        git::ignored(&tree.root, &paths).unwrap_or_default().into_iter().collect();
    // What git ignores is no session's, unless one holds it.
    let is_held = |resource: &Resource| app.registrar.read(|state| state.file_lease(resource).is_some());
    let told = found.into_iter().filter(|(path, name, _)| !ignored.contains(path) || is_held(name));
    told.map(|(_, resource, violation)| (resource, violation)).collect()
}

/// What need not be looked at: temporary files, what left no trace, folders, other trees. And what git did while nobody was seen:
/// either nobody has it, or whoever has it is taken to have done it.
fn is_exempt(tree: &WorkTree, path: &Path, noted: &Noted) -> bool {
    let is_temporary = path.file_name().is_some_and(|name| {
        let beside = |other: &OsStr| tree.root.join(path).with_file_name(other);
        looks_temporary(name, |other| beside(other).symlink_metadata().is_ok())
    });
    let is_folder = || fs::symlink_metadata(tree.root.join(path)).is_ok_and(|about| about.is_dir());
    // Made a tree of its own since its folder is watched.
    let mut above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
    let mut is_elsewhere = || above.any(|above| tree.root.join(above).join(".git").exists());
    let is_gits = noted.by_git && noted.writers.is_empty();
    is_temporary || is_gits || noted.came_and_went() || is_folder() || is_elsewhere()
}

enum Owner {
    /// That of a session in this process.
    Of(Process),
    Unknown,
}

/// The name of what changed in the ledger, and who has it or had it a moment ago. Nothing if it is no file of a tree.
fn owner_of(
    app: &App,
    tree: &WorkTree,
    path: &Path,
    kind: Kind,
    now: Tick,
) -> Option<(Resource, Option<Owner>)> {
    let whole = tree.root.join(path);
    let about = fs::symlink_metadata(&whole).ok();
    // A name that is gone, or a link, is changed itself, and not what it leads to.
    let is_itself = about.is_none_or(|about| about.is_symlink());
    let file = if is_itself { None } else { targets::one(app, &whole).ok().flatten() };
    let names = match file {
        Some(file) => targets::names(&file).ok()?,
        None => vec![Resource::parse(&name_in(tree, path)).ok()?],
    };
    let process = |text: &str| identity::process_in(text).map_or(Owner::Unknown, Owner::Of);
    let ended = &app.files.audit.ended;
    let owner = if kind == Kind::FolderGone {
        let prefix = format!("{}/", names.first()?.as_str());
        let held = app.registrar.read(|state| {
            let mut held = state.file_sessions().flat_map(|session| state.leases_of_holder(&session.id));
            let below = held.find(|lease| lease.resource.as_str().starts_with(&prefix))?;
            Some(process_text(state, below.holder))
        });
        held.or_else(|| ended.had_below(&prefix, now))
    } else {
        let held = app.registrar.read(|state| {
            let holder = names.iter().find_map(|name| Some(state.file_lease(name)?.2))?;
            Some(process_text(state, holder))
        });
        held.or_else(|| names.iter().find_map(|name| ended.had(name, now)))
    };
    Some((names.into_iter().next()?, owner.map(|text| process(&text))))
}

/// The process of a holder; empty if it is no session.
fn process_text(state: &State, holder: &Holder) -> Arc<str> {
    state.file_session(holder).map_or_else(|| "".into(), |session| session.process.clone())
}

fn suspect(app: &App, writer: &SeenWriter, owner: Option<&Owner>) -> Suspect {
    let is_above = |process: &Process| writer.line.iter().any(|above| above.is_same(process));
    let whose = match owner {
        // What goes on in the background of a guard is no longer below its owner.
        Some(Owner::Of(process))
            if is_above(process) || app.files.guards.of(&identity::text_of(process)).iter().any(is_above) =>
        {
            Whose::Owners
        }
        // Who left its owner's side (`setsid`, `nohup … &`) cannot be told from somebody else's; but it began after its owner did.
        Some(Owner::Of(process)) if writer.session.is_none() && may_be_left_by(writer, process) => {
            Whose::Unknown
        }
        // Nobody can be told from somebody who is not known.
        Some(Owner::Unknown) => Whose::Owners,
        Some(Owner::Of(_)) | None => Whose::Others,
    };
    let SeenWriter { pid, name, session, .. } = writer;
    Suspect { pid: *pid, name: name.clone(), session: session.clone(), whose }
}

fn may_be_left_by(writer: &SeenWriter, owner: &Process) -> bool {
    writer
        .adopted
        .as_ref()
        .is_some_and(|adopted| adopted.boot == owner.boot && adopted.started >= owner.started)
}
