//! What settings say, as the agents read them.
