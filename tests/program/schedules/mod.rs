//! The scheduler: its arithmetic, a month with an injected clock, real processes, and their status.

mod arithmetic;
mod connections;
mod hooks;
mod month;
mod obstacles;
mod platforms;
pub(crate) mod process;
mod rewritten;
mod state;
mod status;
