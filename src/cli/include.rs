//! What a command counts that the definition leaves out.

use bellwether::plan::{Claims, Plan};

use super::typed::one_of;

/// What a command counts that the definition leaves out.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Include {
    /// Count imported data too.
    #[arg(long, value_name = "WHAT", value_parser = one_of::<Included>(["claimed"]))]
    include: Option<Included>,
}

/// Something that a definition can leave out.
#[derive(Clone, Copy, Debug)]
struct Included;

impl std::str::FromStr for Included {
    type Err = ();

    fn from_str(_: &str) -> Result<Self, ()> {
        Ok(Self)
    }
}

impl Include {
    /// Whether claims count that the definition leaves out.
    pub(super) fn claims(self) -> Claims {
        self.include.map_or(Claims::LeftOut, |Included| Claims::Included)
    }

    /// A plan with what it leaves out.
    pub(super) fn in_plan(self, plan: Plan) -> Plan {
        match self.claims() {
            Claims::Included => plan.with_claims(),
            Claims::LeftOut => plan,
        }
    }
}
