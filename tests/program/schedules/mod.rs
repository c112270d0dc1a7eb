//! The scheduler: its arithmetic, a month with an injected clock, real processes, and what they tell.

mod arithmetic;
mod hooks;
mod month;
mod platforms;
pub(crate) mod process;
mod rewritten;
mod status;
