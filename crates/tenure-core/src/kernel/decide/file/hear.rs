//! Hear: something was heard of a session.

use crate::kernel::answer::Refusal;
use crate::kernel::draft::Draft;
use crate::kernel::file::{FileAnswer, FileEvent, Introduction, Sign, files};
use crate::kernel::granting::Granting;
use crate::kernel::limits::{FILE_SESSIONS, SEEN_EVERY};
use crate::rules::names::{InvalidInput, is_text};
use crate::rules::time::is_over;

pub(super) fn hear(draft: &mut Draft<'_>, session: &Introduction, sign: Sign) -> Result<FileAnswer, Refusal> {
    introduce(draft, session, sign)?;
    Ok(FileAnswer::Noted)
}

/// Notes that a session is there. Who says the same twice within a second says nothing new.
pub(super) fn introduce(draft: &mut Draft<'_>, session: &Introduction, sign: Sign) -> Result<(), Refusal> {
    check(session)?;
    let (state, now) = (draft.state, draft.now);
    let Some(known) = state.file_session(&session.id) else {
        draft.check_has_room()?;
        check_may_begin(draft, session)?;
        // One event has one form: who is at nothing says nothing.
        let task = session.task.clone().filter(|task| !task.is_empty());
        let session = Introduction { task, ..session.clone() };
        let id = session.id.clone();
        draft.push_file(FileEvent::Began { session, at: now });
        if sign == Sign::TurnEnded {
            draft.push_file(FileEvent::TurnEnded { session: id, at: now });
        }
        return Ok(());
    };
    // A name is for one process: another one of the same name is somebody else.
    if known.process != session.process || known.parent != session.parent {
        return Err(Refusal::HolderTaken { holder: session.id.clone() });
    }
    let id = session.id.clone();
    match sign {
        Sign::TurnEnded if known.turn_ended_at.is_none() => {
            draft.push_file(FileEvent::TurnEnded { session: id, at: now });
        }
        Sign::TurnEnded => {}
        Sign::Active | Sign::Background => {
            let task = session.task.clone().filter(|task| *task != known.task);
            let is_new = known.turn_ended_at.is_some()
                || task.is_some()
                || is_over(now.0, known.seen_at.saturating_add(SEEN_EVERY).0);
            // Without room, what only says when it was last heard of is not written. That it is at work again has to be: it
            // would else lose what it has as one that rests.
            let has_room = state.granting() >= Granting::Renewals;
            if is_new && !has_room && known.turn_ended_at.is_some() {
                return Err(Refusal::NoSpace);
            }
            if is_new && has_room {
                draft.push_file(FileEvent::Seen { session: id.clone(), at: now, task });
                if sign == Sign::Background && known.turn_ended_at.is_some() {
                    draft.push_file(FileEvent::TurnEnded { session: id, at: now });
                }
            }
        }
    }
    Ok(())
}

fn check(session: &Introduction) -> Result<(), Refusal> {
    let texts = [("agent", &session.agent), ("session", &session.session), ("process", &session.process)];
    let task = session.task.iter().map(|task| ("task", task));
    for (field, text) in texts.into_iter().chain(task) {
        if !is_text(text) {
            let reason = "has over 4096 bytes, or a control character";
            return Err(InvalidInput::new(field, reason).into());
        }
    }
    if session.process.is_empty() {
        let reason = "is empty; a session lives as long as its process, so it has one";
        return Err(InvalidInput::new("process", reason).into());
    }
    Ok(())
}

fn check_may_begin(draft: &Draft<'_>, session: &Introduction) -> Result<(), Refusal> {
    let state = draft.state;
    let holds = state.find_holder(&session.id).is_some_and(|slot| !state.rests(slot));
    let is_free = state.may_be(&session.id, &files(), draft.now)
        && !holds
        && state.agent(&session.id).is_none()
        && state.session(&session.id).is_none();
    if !is_free {
        return Err(Refusal::HolderTaken { holder: session.id.clone() });
    }
    if session.parent.as_ref().is_some_and(|parent| state.file_session(parent).is_none()) {
        return Err(Refusal::NoSuchSession);
    }
    if state.file_session_count() >= FILE_SESSIONS {
        return Err(Refusal::TooManySessions { most: FILE_SESSIONS });
    }
    Ok(())
}
