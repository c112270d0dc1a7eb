//! The program; what it does is in the library beside it.

use std::process::ExitCode;

/// That of musl has one lock, at which threads wait for each other: runs take two thirds more processor time.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    bellwether_cli::main()
}
