//! The built-in service over HTTP, compared with the text of the interface: expected answers are written by hand, and
//! read by a client that does not share the service's types.

mod lifetime;
mod news;
mod presence;
mod requests;
mod signals;
