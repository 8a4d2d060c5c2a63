//! The supervisor as a program, for this crate's tests. The gateway re-executes itself instead.

fn main() -> std::io::Result<()> {
    outgate_hooks::supervise()
}
