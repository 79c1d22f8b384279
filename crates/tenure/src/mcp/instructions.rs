//! What an agent is told before it does anything: the whole protocol.

/// Goes to every client with the answer to its first request. Models read it as part of their instructions, so each line
/// says what to do and when.
pub const INSTRUCTIONS: &str = "\
Tenure says who may touch which file, until when. Several agents work here at once; these tools keep them apart.
1. Before you edit, create, delete or rename anything, call `declare` ONCE with the whole list of what you are about to \
touch. You get all of it or nothing.
2. GRANTED: work, on exactly what you declared. Call `heartbeat` at least every third of the lease's time; what runs out \
is no longer yours.
3. WAIT: somebody younger has it, and you are in line. Touch nothing of the list. Do something else, and call \
`declare` with the same list again after the time that you were told.
4. DIE: somebody older has it. Touch nothing of the list, and stop touching what `ended` names: it is no longer yours. \
Call `declare` with the same list again after the time that you were told.
5. You find that you need more: call `declare` with what is new, before you touch it. It adds, and gives nothing back.
6. A heartbeat is rejected, or a tool fails: assume that the lease is lost. Stop, call `status`, and declare anew.
7. When something is done, `release` it; when all is done, `report` the state COMPLETED (or ABORTED): that releases \
everything and ends every wait.
8. `report` what you touched, too: what you had no lease for is named, and has to be undone or declared.
9. `who` says who has a file and who waits for it; `status` says what you have. Neither changes anything.
10. Keep one agent_id from the first call to the last. Nothing here depends on the connection.";
