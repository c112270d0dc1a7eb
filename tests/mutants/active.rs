//! Which mutant is active in this process: one number, read once from a file, as tests clear the environment.

use std::fs::{OpenOptions, read_to_string};
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

const STATE: &str = "@STATE@";
const NONE: u32 = u32::MAX;
/// None is active, and those that are reached are recorded.
const RECORD: u32 = 0;

static ACTIVE: OnceLock<u32> = OnceLock::new();
static REACHED: [AtomicBool; @COUNT@] = [const { AtomicBool::new(false) }; @COUNT@];

pub(crate) fn is(number: u32) -> bool {
    let active = *ACTIVE.get_or_init(|| {
        let text = read_to_string(format!("{STATE}/active")).unwrap_or_default();
        text.trim().parse().unwrap_or(NONE)
    });
    if active == RECORD && !REACHED[number as usize].swap(true, Ordering::Relaxed) {
        record(number);
    }
    active == number
}

fn record(number: u32) {
    let file = OpenOptions::new().create(true).append(true).open(format!("{STATE}/reached"));
    let _ = file.and_then(|mut file| file.write_all(format!("{number}\n").as_bytes()));
}

/// Either of two iterators, for functions whose return type is not named.
#[derive(Clone)]
pub(crate) enum Either<A, B> {
    Mutated(A),
    Original(B),
}

impl<T, A: Iterator<Item = T>, B: Iterator<Item = T>> Iterator for Either<A, B> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        match self {
            Self::Mutated(items) => items.next(),
            Self::Original(items) => items.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Self::Mutated(items) => items.size_hint(),
            Self::Original(items) => items.size_hint(),
        }
    }
}

impl<T, A: DoubleEndedIterator<Item = T>, B: DoubleEndedIterator<Item = T>> DoubleEndedIterator for Either<A, B> {
    fn next_back(&mut self) -> Option<T> {
        match self {
            Self::Mutated(items) => items.next_back(),
            Self::Original(items) => items.next_back(),
        }
    }
}

impl<T, A: ExactSizeIterator<Item = T>, B: ExactSizeIterator<Item = T>> ExactSizeIterator for Either<A, B> {}
