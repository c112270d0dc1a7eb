//! The built-in service over HTTP, held against the interface's text: what it says is written out here by hand, and
//! read with a client that knows nothing of the service's own types.

mod lifetime;
mod news;
mod presence;
mod requests;
mod signals;
