//! Eigenvalues of symmetric matrices.

/// Sweeps after which the rest is taken for rounding; eight are enough in practice.
const SWEEPS: usize = 50;

/// The eigenvalues of a symmetric matrix given row by row, in ascending order, by Jacobi's rotations.
pub(crate) fn symmetric_eigenvalues(mut matrix: Vec<f64>, size: usize) -> Vec<f64> {
    for _ in 0..SWEEPS {
        let squares = |chosen: fn(usize, usize) -> bool| {
            let cells = (0..size * size).filter(|cell| chosen(cell / size, cell % size));
            cells.map(|cell| matrix[cell] * matrix[cell]).sum::<f64>()
        };
        if squares(|row, column| row != column) <= f64::EPSILON.powi(2) * squares(|row, column| row == column) {
            break;
        }
        for row in 0..size {
            for column in row + 1..size {
                rotate(&mut matrix, size, row, column);
            }
        }
    }
    let mut values: Vec<f64> = (0..size).map(|index| matrix[index * (size + 1)]).collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// Makes the cells at (p, q) and (q, p) zero.
fn rotate(matrix: &mut [f64], size: usize, p: usize, q: usize) {
    let target = matrix[p * size + q];
    if target == 0.0 {
        return;
    }
    let half = (matrix[q * size + q] - matrix[p * size + p]) / (2.0 * target);
    let tangent = half.signum() / (half.abs() + half.hypot(1.0));
    let cosine = 1.0 / tangent.hypot(1.0);
    let sine = tangent * cosine;
    for other in 0..size {
        let (x, y) = (matrix[p * size + other], matrix[q * size + other]);
        matrix[p * size + other] = cosine * x - sine * y;
        matrix[q * size + other] = sine * x + cosine * y;
    }
    for other in 0..size {
        let (x, y) = (matrix[other * size + p], matrix[other * size + q]);
        matrix[other * size + p] = cosine * x - sine * y;
        matrix[other * size + q] = sine * x + cosine * y;
    }
    matrix[p * size + q] = 0.0;
    matrix[q * size + p] = 0.0;
}
