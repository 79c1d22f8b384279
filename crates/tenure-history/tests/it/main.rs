//! Histories that break each law, good ones that look suspicious, and the checkers against each other.

mod bad;
mod brute;
mod files;
mod good;
mod ledgers;
mod random;
mod story;
