//! The harnesses.
use super::batch::Bounds;
use super::scan::Shape;
use super::stream::Batches;

/// How many pieces an object has.
pub fn count_pieces(body: &[u8]) -> usize {
    let mut batches = Batches::new(body, Shape::Fields, Bounds::ANSWER);
    let mut count = 0;
    while let Ok(Some(batch)) = batches.next::<()>() {
        count += batch.pieces().len();
    }
    count
}
