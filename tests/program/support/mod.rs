//! Shared by the tests: the program in a temporary folder, services and their days, stores, and Python.

pub(crate) mod azurite;
pub(crate) mod bucket;
pub(crate) mod days;
pub(crate) mod peak;
pub(crate) mod program;
pub(crate) mod proxy;
pub(crate) mod python;
pub(crate) mod random;
pub(crate) mod rows;
pub(crate) mod scripted;
#[cfg(feature = "spark")]
pub(crate) mod scripted_spark;
pub(crate) mod server_process;
pub(crate) mod service;
pub(crate) mod simulated_store;
pub(crate) mod stub_store;
pub(crate) mod terminal;
pub(crate) mod tls;
pub(crate) mod tools;

/// The choices of an enumeration of a definition, as the shipped schema has them.
pub(crate) fn choices(name: &str) -> Vec<String> {
    let schema: serde_json::Value =
        serde_json::from_str(include_str!("../../../pipelines/definition.schema.json")).expect("the schema is JSON");
    let choices = schema["$defs"][name]["oneOf"].as_array().expect("the schema has the enumeration");
    choices.iter().map(|choice| choice["const"].as_str().expect("a choice is a text").to_owned()).collect()
}

/// The statistics of the news in a window.
pub(crate) fn window_statistics() -> Vec<String> {
    choices("Statistic").into_iter().filter(|name| !["last", "days_since"].contains(&name.as_str())).collect()
}
