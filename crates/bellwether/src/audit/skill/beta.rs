//! The betas of names: how their returns move with the mean return of all that are measured.

use std::collections::BTreeSet;

use crate::prices::Prices;

/// Sessions between estimates.
const STEP: usize = 21;

/// Steps that an estimate rests on, about half a year, and the fewest daily returns in them.
const STEPS: usize = 6;
const MIN_RETURNS: f64 = 60.0;

/// The beta of each name over time.
pub(super) struct Betas {
    /// By ticker, then by step; not a number where there are too few returns.
    betas: Vec<f32>,
    steps: usize,
}

impl Betas {
    /// Those of some names, by their numbers.
    pub(super) fn new(prices: &Prices, names: &BTreeSet<u16>) -> Self {
        let (sessions, tickers) = (prices.sessions().len(), prices.tickers().len());
        let daily = |ticker: u16, session: usize| prices.between(ticker, session - 1, session);
        let mut market = vec![(0.0, 0.0); sessions];
        for ticker in names.iter().copied() {
            for (session, (sum, count)) in market.iter_mut().enumerate().skip(1) {
                if let Some(value) = daily(ticker, session) {
                    (*sum, *count) = (*sum + value, *count + 1.0);
                }
            }
        }
        let steps = sessions / STEP + 1;
        let mut betas = vec![f32::NAN; tickers * steps];
        for ticker in names.iter().copied() {
            // Of each step: the returns, their sum, that of the market, of its squares, and of the products.
            let mut sums = vec![[0.0; 5]; steps];
            for session in 1..sessions {
                if let Some(own) = daily(ticker, session) {
                    let all = market[session].0 / market[session].1;
                    let terms = [1.0, own, all, all * all, own * all];
                    sums[session / STEP].iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
                }
            }
            for step in 0..steps {
                let mut of = [0.0; 5];
                for before in &sums[step.saturating_sub(STEPS)..step] {
                    of.iter_mut().zip(before).for_each(|(sum, term)| *sum += term);
                }
                let [count, own, all, squares, products] = of;
                let beta = (products - own * all / count) / (squares - all * all / count);
                if count >= MIN_RETURNS {
                    betas[usize::from(ticker) * steps + step] = beta as f32;
                }
            }
        }
        Self { betas, steps }
    }

    /// The beta of a name as it was known at a session, from the returns of steps before; not a number if it was not.
    pub(super) fn beta(&self, ticker: u16, session: u16) -> f64 {
        f64::from(self.betas[usize::from(ticker) * self.steps + usize::from(session) / STEP])
    }
}
