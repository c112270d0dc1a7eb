//! The program as its users meet it: started as a process, over real HTTP on loopback, with files that other people's
//! tools read back.
#![expect(clippy::disallowed_methods, reason = "tests remove what they made in folders of their own")]

mod ad_hoc;
mod audits;
mod builds;
mod cancel;
mod checks;
mod clocks;
mod commands;
mod crashes;
mod days;
mod definitions;
mod disks;
mod docs;
mod documents;
mod faults;
mod giants;
mod hostile;
mod joins;
mod keys;
mod kills;
mod load;
mod locks;
mod logs;
mod memory;
mod model;
mod network;
mod operations;
mod ownership;
mod progress;
mod projects;
mod promptness;
mod prunes;
mod refusals;
mod reports;
mod runs;
mod schedules;
mod secrets;
mod service;
mod sql;
mod stores;
mod support;
mod takeovers;
mod terminal;
mod windows;
mod zones;
