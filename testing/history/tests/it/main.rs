//! Histories that break each law, good ones that look suspicious, and the checkers against each other.

mod exact_time;
mod history_file;
mod history_syntax;
mod invalid_histories;
mod ledger_check;
mod random_histories;
mod valid_histories;
