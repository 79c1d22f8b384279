//! The search for an order.

use std::collections::{HashMap, HashSet};

use crate::history::History;
use crate::law::{Law, Violation};

use super::SearchVerdict;
use super::lease_table::{FenceBounds, LeaseTable};
use super::resource_operation::{NameId, ResourceAction, ResourceOperation};
use super::step::{StepViolation, step};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchEffort {
    pub operations: usize,
    /// How many tables were looked at.
    pub steps: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchResult {
    pub verdict: SearchVerdict,
    pub effort: SearchEffort,
}

/// Stands for a holder that an answer does not name.
pub(super) const ANY_HOLDER: NameId = NameId::MAX;

/// Which operations have their place already, and what they lead to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct SearchNode {
    /// All answered operations before this one have theirs,
    base: usize,
    ahead: Vec<usize>,
    /// and these of which nobody knows.
    applied_unknown: Vec<usize>,
    table: LeaseTable,
}

struct Search<'a> {
    /// In the order in which they were asked.
    answered: Vec<&'a ResourceOperation>,
    unknown: Vec<&'a ResourceOperation>,
    /// When somebody last asked for a lease by its number.
    last_requested: HashMap<u64, u64>,
    /// Which answers say something about a holder or a key.
    mentions: HashMap<NameId, Vec<usize>>,
    /// Which of them show a lease of that holder of which nobody was told otherwise.
    reveals: HashMap<NameId, Vec<usize>>,
}

/// Looks for an order of `parts`, which are in the order in which they were asked.
pub(super) fn search(
    history: &History,
    resource: &str,
    parts: &[ResourceOperation],
    max_steps: usize,
) -> SearchResult {
    let (unknown, answered) = parts.iter().partition(|part| part.is_unknown(history));
    let requests =
        parts.iter().flat_map(|part| part.mentioned_fences().into_iter().map(|fence| (fence, part.invoked)));
    // They are in order, so the last one stays.
    let mut search = Search {
        answered,
        unknown,
        last_requested: requests.collect(),
        mentions: HashMap::new(),
        reveals: HashMap::new(),
    };
    search.index_mentions();
    let mut seen: HashSet<SearchNode> = HashSet::new();
    let mut deepest = SearchNode::default();
    let mut open = vec![search.place_neutral_operations(SearchNode::default())];
    let effort = |steps| SearchEffort { operations: parts.len(), steps };
    while let Some(node) = open.pop() {
        if node.base == search.answered.len() {
            return SearchResult { verdict: SearchVerdict::Holds, effort: effort(seen.len()) };
        }
        if node.progress() > deepest.progress() {
            deepest = node.clone();
        }
        if seen.len() >= max_steps {
            return SearchResult { verdict: SearchVerdict::Undecided, effort: effort(seen.len()) };
        }
        // The best guess is looked at first, so it goes onto the pile last.
        let next = search.next(&node);
        if seen.insert(node) {
            open.extend(next.into_iter().rev().filter(|node| !seen.contains(node)));
        }
    }
    let violation = Box::new(search.explain(history, resource, &deepest));
    SearchResult { verdict: SearchVerdict::Violated(violation), effort: effort(seen.len()) }
}

impl SearchNode {
    fn progress(&self) -> usize {
        self.base + self.ahead.len()
    }

    fn has(&self, index: usize) -> bool {
        index < self.base || self.ahead.contains(&index)
    }
}

impl Search<'_> {
    /// The answered operations that can come next: those that were asked before any other had to be answered.
    fn candidates(&self, node: &SearchNode) -> (Vec<usize>, u64) {
        let (mut candidates, mut deadline) = (Vec::new(), u64::MAX);
        for (index, part) in self.answered.iter().enumerate().skip(node.base) {
            if part.invoked > deadline {
                break;
            }
            if !node.has(index) {
                candidates.push(index);
                deadline = deadline.min(part.ended);
            }
        }
        candidates.retain(|index| self.answered[*index].invoked <= deadline);
        candidates.sort_by_key(|index| self.answered[*index].ended);
        (candidates, deadline)
    }

    /// Gives a place to whatever changes nothing: if it fits here, no order needs it elsewhere.
    fn place_neutral_operations(&self, mut node: SearchNode) -> SearchNode {
        while let Some(index) = {
            let (candidates, _) = self.candidates(&node);
            let changes_nothing = |index: &usize| {
                step(&node.table, self.answered[*index]).is_ok_and(|table| table == node.table)
            };
            candidates.into_iter().find(changes_nothing)
        } {
            self.place(&mut node, index);
        }
        let horizon = self.answered.get(node.base).map_or(u64::MAX, |part| part.invoked);
        // Whoever may still happen was asked before, but decides no earlier than the table's time.
        let horizon = horizon.min(self.earliest_unknown(&node));
        let is_requested = |fence: u64| self.last_requested.get(&fence).is_some_and(|last| *last >= horizon);
        node.table.drop_ended(horizon, is_requested);
        node
    }

    fn earliest_unknown(&self, node: &SearchNode) -> u64 {
        let open = (0..self.unknown.len()).filter(|index| !node.applied_unknown.contains(index));
        let at = open.map(|index| self.unknown[index]).filter(|part| part.ended >= node.table.now);
        at.map(|part| part.invoked.max(node.table.now)).min().unwrap_or(u64::MAX)
    }

    fn place(&self, node: &mut SearchNode, index: usize) {
        node.ahead.push(index);
        node.ahead.sort_unstable();
        while let Some(at) = node.ahead.iter().position(|ahead| *ahead == node.base) {
            node.ahead.remove(at);
            node.base += 1;
        }
    }

    fn next(&self, node: &SearchNode) -> Vec<SearchNode> {
        let (candidates, deadline) = self.candidates(node);
        // Somebody was answered before this can have happened.
        if node.table.now > deadline {
            return Vec::new();
        }
        // Numbers only grow, so the smallest comes first. What was asked for under a key may have begun earlier.
        let begins = |index: &usize| {
            self.answered[*index].granted_fence().filter(|_| !self.answered[*index].has_key())
        };
        let lowest = candidates.iter().filter_map(begins).min();
        let mut next = Vec::new();
        for index in candidates {
            let part = self.answered[index];
            if lowest.is_some_and(|lowest| begins(&index).is_some_and(|fence| fence > lowest)) {
                continue;
            }
            if let Ok(table) = step(&node.table, part) {
                let mut after = SearchNode { table, ..node.clone() };
                self.place(&mut after, index);
                next.push(self.place_neutral_operations(after));
            }
        }
        for (index, part) in self.unknown.iter().enumerate() {
            if part.invoked > deadline
                || node.applied_unknown.contains(&index)
                || !self.is_relevant(node, part, deadline)
            {
                continue;
            }
            if let Ok(table) = step(&node.table, part)
                && table != node.table
            {
                let mut after = SearchNode { table, ..node.clone() };
                after.applied_unknown.push(index);
                after.applied_unknown.sort_unstable();
                next.push(self.place_neutral_operations(after));
            }
        }
        next
    }

    fn index_mentions(&mut self) {
        let granted: HashSet<u64> = self.answered.iter().filter_map(|part| part.granted_fence()).collect();
        for (index, part) in self.answered.iter().enumerate() {
            for number in part.mentioned_names() {
                self.mentions.entry(number).or_default().push(index);
            }
            for seen in part.observations().iter().filter(|seen| !granted.contains(&seen.fence)) {
                self.reveals.entry(seen.holder).or_default().push(index);
            }
        }
    }

    /// Whether it can make a difference that a request was granted without an answer: only to an answer that says
    /// something about its holder or its key, while its lease can live. Who can be granted at any time need not be
    /// before such an answer comes up, unless that tells its number, which has its place among the others.
    fn is_relevant(&self, node: &SearchNode, part: &ResourceOperation, deadline: u64) -> bool {
        let ResourceAction::Acquire { holder, key, ttl, .. } = part.action else { return true };
        let until = if part.ended == u64::MAX { deadline } else { part.ended.saturating_add(ttl) };
        let comes_up = |mentions: &HashMap<NameId, Vec<usize>>, number: NameId, until: u64| {
            let mentions = mentions.get(&number).map_or(&[][..], Vec::as_slice);
            let mentions =
                mentions.iter().filter(|index| !node.has(**index)).map(|index| self.answered[*index]);
            mentions.into_iter().any(|other| other.invoked <= until && other.ended >= part.invoked)
        };
        // A key is known for longer than its lease lives.
        key.is_some_and(|key| comes_up(&self.mentions, key, u64::MAX))
            || comes_up(&self.mentions, holder, until)
            || comes_up(&self.mentions, ANY_HOLDER, until)
            || comes_up(&self.reveals, holder, part.ended.saturating_add(ttl))
    }

    /// Why nothing can follow where the search came furthest.
    fn explain(&self, history: &History, resource: &str, node: &SearchNode) -> Violation {
        let (candidates, _) = self.candidates(node);
        let stuck = |index: &usize| Some((*index, step(&node.table, self.answered[*index]).err()?));
        let stuck: Vec<(usize, StepViolation)> = candidates.iter().filter_map(stuck).collect();
        let Some((first, (law, reason))) = stuck.first() else {
            let reason = format!("{resource}: no order of the operations explains their answers");
            return Violation::new(Law::RealTimeOrder, reason);
        };
        let operation = |part: &ResourceOperation| &history.operations[part.operation];
        let mut violation = Violation::new(*law, format!("{resource}: {reason}"));
        for lease in &node.table.leases {
            let FenceBounds::Exact(fence) = lease.fence else { continue };
            let made = self.answered.iter().filter(|part| part.granted_fence() == Some(fence));
            violation = made.fold(violation, |violation, part| violation.with_operation(operation(part)));
        }
        let began = self.answered[*first].invoked;
        let before = (0..self.answered.len()).filter(|index| node.has(*index));
        let near: Vec<_> = before.filter(|index| self.answered[*index].ended <= began).collect();
        violation = violation.with_line("… and just before:");
        for index in near.iter().rev().take(4).rev() {
            violation = violation.with_operation(operation(self.answered[*index]));
        }
        violation = violation.with_line("what cannot be explained:");
        for (index, (_, reason)) in stuck.iter().take(4) {
            violation = violation
                .with_operation(operation(self.answered[*index]))
                .with_line(format!("  because {reason}"));
        }
        let open = self.unknown.iter().filter(|part| part.invoked <= self.answered[*first].ended);
        let may: Vec<_> = open.filter(|part| part.ended >= node.table.now).collect();
        if !may.is_empty() {
            violation = violation.with_line("what may or may not have happened does not help:");
            violation = may
                .iter()
                .take(4)
                .fold(violation, |violation, part| violation.with_operation(operation(part)));
        }
        violation
    }
}
