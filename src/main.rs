//! The program; what it does is in the library beside it.

use std::process::ExitCode;

/// That of musl has one lock, at which threads wait for each other.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    bellwether_cli::main()
}
