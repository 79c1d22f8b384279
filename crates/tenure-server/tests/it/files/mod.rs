//! Files over the local socket, asked for by processes of their own.

mod audit;
mod letting_go;
mod links;
mod rights;
mod stage;
