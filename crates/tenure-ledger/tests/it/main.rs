//! What every ledger promises, and what the embedded one does when its files are not what it wrote.

mod copies;
mod damage;
mod reopening;
mod suite;
mod torn;
