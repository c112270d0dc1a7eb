//! The program as its users meet it: started as a process, over real HTTP on loopback, with files that other people's
//! tools read back.

mod ad_hoc;
mod audits;
mod builds;
mod checks;
mod crashes;
mod days;
mod definitions;
mod disks;
mod faults;
mod hostile;
mod joins;
mod keys;
mod kills;
mod memory;
mod model;
mod network;
mod operations;
mod progress;
mod refusals;
mod reports;
mod runs;
mod secrets;
mod service;
mod support;
mod takeovers;
mod terminal;
mod zones;
